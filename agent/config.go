package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

const tokenMin, tokenMax = 16, 4096

// Config is the command line. No secret is in it.
type Config struct {
	Listen     []string
	Sandbox    string
	Workdir    string
	Spool      string
	Cgroup     string
	Baseline   string
	Own        []string
	IgnoreTerm bool
	Account    *Account
	ReadyFd    int
	LifeFd     int
	token      []byte
}

type listFlag []string

func (l *listFlag) String() string        { return strings.Join(*l, ",") }
func (l *listFlag) Set(text string) error { *l = append(*l, text); return nil }

func parseConfig(args []string) (*Config, error) {
	c := &Config{}
	flags := flag.NewFlagSet("orchard-agent", flag.ContinueOnError)
	flags.Var((*listFlag)(&c.Listen), "listen", "unix:/path, tcp:host:port or fd:number; may be repeated")
	flags.StringVar(&c.Sandbox, "sandbox-id", "", "the id that every call must name")
	tokenFd := flags.Int("token-fd", -1, "inherited file descriptor to read the token from")
	tokenFile := flags.String("token-file", "", "file to read the token from; removed before anything is served")
	keepToken := flags.Bool("keep-token-file", false, "go on when the token file can be neither removed nor emptied")
	flags.StringVar(&c.Workdir, "workdir", "/", "working directory of commands that name none")
	flags.StringVar(&c.Spool, "spool", "", "directory for output; the first writable of the usual ones by default")
	flags.StringVar(&c.Cgroup, "cgroup", "", "delegated cgroup v2 directory; commands get a cgroup each below it")
	flags.StringVar(&c.Baseline, "baseline", "", "file for the list of what there is before anything is served")
	flags.Var((*listFlag)(&c.Own), "own-mount", "a mount whose files are the sandbox's own; may be repeated")
	flags.BoolVar(&c.IgnoreTerm, "ignore-term", false, "leave SIGTERM unanswered: only /v1/shutdown ends the agent")
	dropTo := flags.String("drop-to", "", "user that commands run as and files belong to: name, uid or uid:gid")
	flags.IntVar(&c.ReadyFd, "ready-fd", -1, "inherited file descriptor that gets a line when the agent serves")
	flags.IntVar(&c.LifeFd, "life-fd", -1, "inherited pipe; when its other end is closed, the agent and all it started end")
	version := flags.Bool("version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *version {
		fmt.Println(agentVersion)
		return nil, flag.ErrHelp
	}
	if flags.NArg() > 0 || len(c.Listen) == 0 || c.Sandbox == "" {
		return nil, errors.New("--listen and --sandbox-id are needed, and no further arguments are taken")
	}
	if *dropTo != "" {
		account, err := lookUpAccount(*dropTo)
		if err != nil {
			return nil, err
		}
		c.Account = account
	}
	return c, c.readToken(*tokenFd, *tokenFile, *keepToken)
}

func (c *Config) readToken(fd int, path string, keep bool) (err error) {
	var file *os.File
	switch {
	case (fd >= 0) == (path != ""):
		return errors.New("exactly one of --token-fd and --token-file is needed")
	case fd >= 0:
		file = os.NewFile(uintptr(fd), "token")
	default:
		if file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
			return err
		}
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, tokenMax+1))
	if err != nil {
		return fmt.Errorf("cannot read the token: %w", err)
	}
	if path != "" && !keep {
		if err := spend(file, path); err != nil {
			return err
		}
	}
	c.token = bytes.TrimSpace(raw)
	if len(c.token) < tokenMin || len(c.token) > tokenMax {
		return fmt.Errorf("the token must have %d to %d bytes", tokenMin, tokenMax)
	}
	return nil
}

// spend takes the token out of the world, for a command that could read it would rule the sandbox. What is no regular
// file, a pipe say, has given its content away already.
func spend(file *os.File, path string) error {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	err := os.Remove(path)
	if err != nil && os.Truncate(path, 0) != nil {
		return fmt.Errorf("every command inside could read the token: %w; put the file into a directory that uid %d may "+
			"write to, or give --keep-token-file where no command can read it", err, os.Geteuid())
	}
	return nil
}
