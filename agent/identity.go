package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// asUser runs a file call with the rights of the sandbox's user, or of the one asked for: what that user may not touch
// is refused, what is made is theirs, and a link that they planted leads nowhere that they could not go themselves.
func (s *Server) asUser(handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		account := s.runs.defaults.Account
		if user := r.URL.Query().Get("user"); user != "" {
			found, err := lookUpAccount(user)
			if err != nil {
				return err
			}
			account = found
		}
		user, err := account.credential()
		if err != nil {
			return err
		}
		if user == nil {
			return handle(w, r)
		}
		return impersonate(user, func() error { return handle(w, r) })
	}
}

// impersonate changes the file system identity of this one thread. A thread that cannot be changed back is left locked,
// so that it serves nobody else and ends with its goroutine.
func impersonate(user *syscall.Credential, do func() error) error {
	own, err := syscall.Getgroups()
	if err != nil {
		return err
	}
	ownGroups := make([]uint32, len(own))
	for i, group := range own {
		ownGroups[i] = uint32(group)
	}
	runtime.LockOSThread()
	defer func() {
		if assume(os.Geteuid(), os.Getegid(), ownGroups) == nil {
			runtime.UnlockOSThread()
			return
		}
		panic(http.ErrAbortHandler)
	}()
	if err := assume(int(user.Uid), int(user.Gid), user.Groups); err != nil {
		return fault(http.StatusForbidden, "user_not_permitted", "cannot act as %d:%d: %v", user.Uid, user.Gid, err)
	}
	return do()
}

// assume sets the identity that the kernel checks files against; CAP_SETGID and CAP_SETUID stay in effect throughout.
func assume(uid, gid int, groups []uint32) error {
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSGID, uintptr(gid), 0, 0)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(uid), 0, 0)
	if errno != 0 {
		return errno
	}
	now, _, _ := syscall.RawSyscall(syscall.SYS_SETFSUID, ^uintptr(0), 0, 0)
	if int(uint32(now)) != uid {
		return fmt.Errorf("the kernel kept uid %d", uint32(now))
	}
	return nil
}
