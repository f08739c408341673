package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	scriptInline = 96 << 10 // Linux refuses a single argument of 128 KiB
	defaultPath  = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

var shells = []string{"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", "/bin/ash", "/busybox/sh"}

// Command is a spec resolved against this sandbox: what exactly is executed, and as whom.
type Command struct {
	path   string
	argv   []string
	env    []string
	cwd    string
	user   *syscall.Credential
	script *os.File // a large script; it becomes file descriptor 3 of the shell
}

// resolve does all checks that have an answer of their own, so that the spawn itself hardly ever fails.
func resolve(spec *ExecSpec, defaults Defaults) (*Command, error) {
	account := defaults.Account
	if spec.User != "" {
		found, err := lookUpAccount(spec.User)
		if err != nil {
			return nil, err
		}
		account = found
	}
	user, err := account.credential()
	if err != nil {
		return nil, err
	}
	c := &Command{user: user, env: environment(spec, account, user != nil)}
	if c.cwd, err = workingDirectory(string(spec.Cwd), defaults.Workdir); err != nil {
		return nil, err
	}
	if spec.Script != nil {
		return c, c.useShell(spec)
	}
	for _, arg := range spec.Argv {
		if strings.IndexByte(string(arg), 0) >= 0 {
			return nil, fault(http.StatusUnprocessableEntity, "nul_byte", "an argument holds a NUL byte, which no command can be given")
		}
		c.argv = append(c.argv, string(arg))
	}
	c.path, err = findProgram(c.argv[0], c.cwd, variable(c.env, "PATH"))
	return c, err
}

func workingDirectory(cwd, fallback string) (string, error) {
	if cwd == "" {
		cwd = fallback
	}
	info, err := os.Stat(cwd)
	if errors.Is(err, os.ErrNotExist) {
		return "", fault(http.StatusUnprocessableEntity, "cwd_missing", "no directory %q", cwd)
	}
	if err != nil {
		return "", fault(http.StatusUnprocessableEntity, "cwd_missing", "cannot use %q: %v", cwd, err)
	}
	if !info.IsDir() {
		return "", fault(http.StatusUnprocessableEntity, "cwd_missing", "%q is not a directory", cwd)
	}
	return cwd, nil
}

func (c *Command) useShell(spec *ExecSpec) error {
	shell := string(spec.Shell)
	if shell == "" {
		for _, candidate := range shells {
			if syscall.Access(candidate, 1) == nil {
				shell = candidate
				break
			}
		}
	}
	if shell == "" || syscall.Access(shell, 1) != nil {
		return fault(http.StatusUnprocessableEntity, "no_shell",
			"this image has no shell (looked for %s): give argv instead of a string", strings.Join(shells, ", "))
	}
	script := string(*spec.Script)
	if strings.IndexByte(script, 0) >= 0 {
		return fault(http.StatusUnprocessableEntity, "nul_byte", "the script holds a NUL byte, which no shell takes")
	}
	c.path, c.argv = shell, []string{filepath.Base(shell), "-c", script}
	if len(script) > scriptInline {
		file, err := scriptFile(script)
		if err != nil {
			return err
		}
		c.script, c.argv[2] = file, ". /proc/self/fd/3"
	}
	return nil
}

// environment is the agent's own (the image's), then the spec's, byte for byte, then the run's mark.
func environment(spec *ExecSpec, account *Account, switched bool) []string {
	values := map[string]string{}
	if !spec.ClearEnv {
		for _, pair := range os.Environ() {
			if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
				values[name] = value
			}
		}
		if values["PATH"] == "" {
			values["PATH"] = defaultPath
		}
		if switched || (account != nil && values["HOME"] == "") {
			values["HOME"], values["USER"], values["LOGNAME"] = account.home, account.name, account.name
		}
	}
	if spec.Terminal != nil && values["TERM"] == "" {
		values["TERM"] = terminalName
	}
	for _, pair := range spec.Env {
		values[string(pair[0])] = string(pair[1])
	}
	values[runMarkName] = spec.ID
	env := make([]string, 0, len(values))
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	return env
}

func variable(env []string, name string) string {
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

func findProgram(name, cwd, path string) (string, error) {
	if strings.Contains(name, "/") {
		full := name
		if !filepath.IsAbs(full) {
			full = cwd + "/" + name
		}
		return name, executable(full, name)
	}
	var refused error
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		full := dir + "/" + name
		seen := full
		if !filepath.IsAbs(full) {
			seen = cwd + "/" + full
		}
		err := executable(seen, name)
		if err == nil {
			return full, nil
		}
		if asFault(err).Code == "not_executable" && refused == nil {
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", fault(http.StatusUnprocessableEntity, "command_not_found", "no program %q on PATH %q", name, path)
}

func executable(full, name string) error {
	info, err := os.Stat(full)
	if err != nil {
		return fault(http.StatusUnprocessableEntity, "command_not_found", "no program %q: %v", name, err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fault(http.StatusUnprocessableEntity, "not_executable", "%q is not an executable file", full)
	}
	return nil
}
