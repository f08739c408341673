// Command orchard-agent runs inside a sandbox and serves exec, files, forwarding and tunnels to one driver.
//
// The protocol is written down in docs/reference/agent-protocol.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

const (
	agentVersion      = "1"
	memoryGoal        = 20 << 20
	shutdownPatience  = 3 * time.Second
	goroutinesAtOnce  = 2
	garbagePercentage = 50
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "tool" {
		os.Exit(toolMain(os.Args[2:], toolStreams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
	}
	if len(os.Args) > 1 && os.Args[1] == "clone" {
		os.Exit(cloneMain(os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "inject" {
		os.Exit(injectMain(os.Args[2:], os.Stderr))
	}
	runtime.GOMAXPROCS(min(goroutinesAtOnce, runtime.NumCPU()))
	debug.SetGCPercent(garbagePercentage)
	debug.SetMemoryLimit(memoryGoal)
	syscall.Umask(0o022)
	config, err := parseConfig(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = serve(config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "orchard-agent:", err)
		os.Exit(2)
	}
}

// serve returns when the agent has been told to end, and everything it started is gone.
func serve(config *Config) error {
	if err := harden(); err != nil {
		return fmt.Errorf("cannot protect the token: %w", err)
	}
	raiseLoopback()
	makeWorkdir(config.Workdir, config.Account)
	reaper := newReaper()
	defaults := Defaults{Account: config.Account, Workdir: config.Workdir}
	runs := newRuns(defaults, reaper, newSpoolDir(config.Spool), newCgroups(config.Cgroup))
	stop, renewed := make(chan struct{}, 1), make(chan renewal, 1)
	server := &Server{
		config: config, auth: newAuth(config.Sandbox, config.token), runs: runs, started: time.Now(),
		stop: func() {
			select {
			case stop <- struct{}{}:
			default:
			}
		},
	}
	server.renew = func(next renewal) { renewed <- next }
	clear(config.token)
	baseline, err := openBaseline(config)
	if err != nil {
		return err
	}
	server.baseline = baseline
	watchSignals(config, server.stop)
	httpServer := server.httpServer()
	failed := make(chan error, len(config.Listen))
	for _, address := range config.Listen {
		listener, err := listenOn(address)
		if err != nil {
			return fmt.Errorf("cannot listen on %s: %w", address, err)
		}
		go func(l net.Listener) { failed <- httpServer.Serve(l) }(listener)
	}
	announceReady(config.ReadyFd)
	holdLifeline(config.LifeFd, server.stop)
	select {
	case <-stop:
	case next := <-renewed:
		finish(httpServer)
		return become(os.Args, next)
	case err := <-failed:
		return err
	}
	return endAll(httpServer, runs)
}

// fatalSignals are those at which the Go runtime, or the kernel by default, would end or stop the agent. All others it
// takes and drops by itself.
var fatalSignals = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS,
	syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGSTKFLT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
	syscall.SIGSYS,
}

// watchSignals keeps the agent alive whatever signal a command sends to it. Notify, unlike Ignore, is not inherited by
// commands; for each signal it costs two switches of thread, so that only those are named that need it.
func watchSignals(config *Config, stop func()) {
	ended, others := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(others, fatalSignals...)
	if config.IgnoreTerm {
		signal.Notify(others, syscall.SIGTERM)
	} else {
		signal.Notify(ended, syscall.SIGTERM)
	}
	go func() {
		for {
			select {
			case <-ended:
				stop()
			case <-others:
			}
		}
	}()
}

func announceReady(fd int) {
	if fd >= 0 {
		file := os.NewFile(uintptr(fd), "ready")
		_, _ = file.WriteString("ready\n")
		_ = file.Close()
	}
}

// endAll lets answers in flight finish, within a bound, and leaves no process behind.
func endAll(server *http.Server, runs *Runs) error {
	runs.Close()
	gone := killDescendants()
	finish(server)
	if !gone {
		return errors.New("some processes did not end")
	}
	return nil
}

// finish lets answers in flight end, within a bound.
func finish(server *http.Server) {
	patience, cancel := context.WithTimeout(context.Background(), shutdownPatience)
	defer cancel()
	if server.Shutdown(patience) != nil {
		_ = server.Close()
	}
}
