package main

import "syscall"

const (
	sysFstatat       = syscall.SYS_FSTATAT
	sysCopyFileRange = 285
)
