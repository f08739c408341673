"""Credit that is measured: V(s_t) is the mean reward of continuations from the state before answer t."""
