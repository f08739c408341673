package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// restart kills everything inside and has this process become a new agent, which knows the token in the body and no
// other, on the same files. From the answer on, the old agent lets nobody in.
func (s *Server) restart(w http.ResponseWriter, r *http.Request) error {
	if !restartable(s.config) {
		return fault(http.StatusConflict, "restart_unsupported", "this agent serves an inherited socket: start another on it")
	}
	token, err := io.ReadAll(io.LimitReader(patientBody(w, r), tokenMax+1))
	if err != nil {
		return fault(http.StatusBadRequest, "body_cut", "the token did not arrive: %v", err)
	}
	token = bytes.TrimSpace(token)
	if len(token) < tokenMin || len(token) > tokenMax {
		return badRequest("the token must have %d to %d bytes", tokenMin, tokenMax)
	}
	s.runs.Close()
	if !killDescendants() {
		return fault(http.StatusInternalServerError, "kill_failed", "some processes did not end within %v", killPatience)
	}
	s.auth.Lock()
	err = answer(w, map[string]bool{"restarting": true})
	_ = http.NewResponseController(w).Flush()
	s.renew(token)
	return err
}

// restartable agents can open their sockets anew.
func restartable(config *Config) bool {
	for _, address := range config.Listen {
		if strings.HasPrefix(address, "fd:") {
			return false
		}
	}
	return config.LifeFd < 0
}

// become replaces this process, and with it every secret, record and connection it holds. It returns only an error.
func become(args []string, token []byte) error {
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], 0); err != nil {
		return err
	}
	if _, err := syscall.Write(pipe[1], token); err != nil {
		return err
	}
	_ = syscall.Close(pipe[1])
	return syscall.Exec("/proc/self/exe", renewedArgs(args, pipe[0]), os.Environ())
}

// renewedArgs has the token come from a descriptor. What announced the first start has done so.
func renewedArgs(args []string, tokenFd int) []string {
	renewed := []string{args[0]}
	for i := 1; i < len(args); i++ {
		name, _, inline := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if name == "token-fd" || name == "token-file" || name == "ready-fd" {
			if !inline {
				i++
			}
			continue
		}
		renewed = append(renewed, args[i])
	}
	return append(renewed, "--token-fd", strconv.Itoa(tokenFd))
}
