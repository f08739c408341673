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

const (
	variableMax    = 100 << 10
	environmentMax = 512 << 10
)

// renewal is what a new agent begins with.
type renewal struct {
	token []byte
	env   []string
}

// restart kills everything inside and has this process become a new agent, which knows the token in the body and no
// other, on the same files. From the answer on, the old agent lets nobody in.
func (s *Server) restart(w http.ResponseWriter, r *http.Request) error {
	if !restartable(s.config) {
		return fault(http.StatusConflict, "restart_unsupported", "this agent serves an inherited socket: start another on it")
	}
	body, err := io.ReadAll(io.LimitReader(patientBody(w, r), tokenMax+environmentMax+1))
	if err != nil {
		return fault(http.StatusBadRequest, "body_cut", "the token did not arrive: %v", err)
	}
	next, err := readRenewal(body)
	if err != nil {
		return err
	}
	s.runs.Close()
	if !killDescendants() {
		return fault(http.StatusInternalServerError, "kill_failed", "some processes did not end within %v", killPatience)
	}
	s.auth.Lock()
	err = answer(w, map[string]bool{"restarting": true})
	_ = http.NewResponseController(w).Flush()
	s.renew(next)
	return err
}

// readRenewal takes a body apart: the token, and after it variables, each with a NUL before it.
func readRenewal(body []byte) (renewal, error) {
	if len(body) > tokenMax+environmentMax {
		return renewal{}, badRequest("the token and its variables are more than %d bytes", tokenMax+environmentMax)
	}
	parts := strings.Split(string(body), "\x00")
	next := renewal{token: bytes.TrimSpace([]byte(parts[0])), env: parts[1:]}
	if len(next.token) < tokenMin || len(next.token) > tokenMax {
		return renewal{}, badRequest("the token must have %d to %d bytes", tokenMin, tokenMax)
	}
	for _, variable := range next.env {
		if at := strings.IndexByte(variable, '='); at < 1 || len(variable) > variableMax {
			return renewal{}, badRequest("a variable is NAME=VALUE of at most %d bytes", variableMax)
		}
	}
	return next, nil
}

// mergedEnv is the old environment under the new one.
func mergedEnv(old, fresh []string) []string {
	name := func(variable string) string { before, _, _ := strings.Cut(variable, "="); return before }
	replaced := map[string]bool{}
	for _, variable := range fresh {
		replaced[name(variable)] = true
	}
	merged := make([]string, 0, len(old)+len(fresh))
	for _, variable := range old {
		if !replaced[name(variable)] {
			merged = append(merged, variable)
		}
	}
	return append(merged, fresh...)
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
func become(args []string, next renewal) error {
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], 0); err != nil {
		return err
	}
	if _, err := syscall.Write(pipe[1], next.token); err != nil {
		return err
	}
	_ = syscall.Close(pipe[1])
	return syscall.Exec("/proc/self/exe", renewedArgs(args, pipe[0]), mergedEnv(os.Environ(), next.env))
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
