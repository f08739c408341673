package main

import "syscall"

const (
	sysFstatat       = syscall.SYS_NEWFSTATAT
	sysCopyFileRange = 326
)
