package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Putting the agent where another container can run it: the whole work of an init container, whose image holds nothing
// but this program.

const (
	injectedName = "orchard-agent"
	injectedMode = 0o555 // any user may run it, nobody changes it
	tokenMode    = 0o444 // its reader's uid is the image's own, which nobody out here knows
	tokenDirMode = 0o777 // so that this reader can remove it: see Config.readToken
	tokenPurpose = "orchard-agent-token"
	seedMin      = 32
	seedMax      = 4096
)

// Injection is the command line of `inject`. The seed is the only secret, and stays in the file that it names.
type Injection struct {
	To      string
	Seed    string
	Sandbox string
	PodUID  string
	Token   string
}

func injectMain(args []string, errs io.Writer) int {
	injection, err := parseInjection(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = injection.run()
	}
	if err != nil {
		fmt.Fprintln(errs, "orchard-agent inject:", err)
		return 2
	}
	return 0
}

func parseInjection(args []string, errs io.Writer) (*Injection, error) {
	i := &Injection{}
	flags := flag.NewFlagSet("orchard-agent inject", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&i.To, "to", "", "directory that gets orchard-agent; made when missing")
	flags.StringVar(&i.Seed, "seed-file", "", "file with the secret that tokens are derived from")
	flags.StringVar(&i.Sandbox, "sandbox-id", "", "id of the sandbox that the token is for")
	flags.StringVar(&i.PodUID, "pod-uid", "", "what tells this sandbox from an earlier one of the same id")
	flags.StringVar(&i.Token, "token-file", "", "where the token goes; its directory is made when missing")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	given := 0
	for _, value := range []string{i.Seed, i.Sandbox, i.PodUID, i.Token} {
		if value != "" {
			given++
		}
	}
	if flags.NArg() > 0 || (i.To == "" && given == 0) || (given != 0 && given != 4) {
		return nil, errors.New("--to or a token is needed; --seed-file, --sandbox-id, --pod-uid and --token-file go " +
			"together, each with a value; no further arguments are taken")
	}
	return i, nil
}

func (i *Injection) run() error {
	syscall.Umask(0)
	if err := i.copyAgent(); err != nil {
		return fmt.Errorf("cannot put the agent into %s: %w", i.To, err)
	}
	if i.Token == "" {
		return nil
	}
	seed, err := readSeed(i.Seed)
	if err != nil {
		return fmt.Errorf("cannot read the seed: %w", err)
	}
	if err := i.placeToken(deriveToken(seed, i.Sandbox, i.PodUID)); err != nil {
		return fmt.Errorf("cannot write the token: %w", err)
	}
	return nil
}

func (i *Injection) placeToken(token string) error {
	if err := os.MkdirAll(filepath.Dir(i.Token), tokenDirMode); err != nil {
		return err
	}
	return placeFile(i.Token, tokenMode, func(file *os.File) error {
		_, err := file.WriteString(token)
		return err
	})
}

func (i *Injection) copyAgent() error {
	if i.To == "" { // an image volume shows the agent
		return nil
	}
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		if own, err = os.Open(os.Args[0]); err != nil { // without /proc
			return err
		}
	}
	defer own.Close()
	if err := os.MkdirAll(i.To, 0o755); err != nil {
		return err
	}
	return placeFile(filepath.Join(i.To, injectedName), injectedMode, func(file *os.File) error {
		_, err := io.Copy(file, own)
		return err
	})
}

// placeFile makes a file appear whole: a reader sees all of it, or the one before.
func placeFile(path string, mode os.FileMode, fill func(*os.File) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = fill(file)
	if err == nil {
		err = file.Chmod(mode)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// readSeed takes the file as it is, byte for byte, for so does whoever derives the same token elsewhere.
func readSeed(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	seed, err := io.ReadAll(io.LimitReader(file, seedMax+1))
	if err == nil && (len(seed) < seedMin || len(seed) > seedMax) {
		err = fmt.Errorf("%s must have %d to %d bytes", path, seedMin, seedMax)
	}
	return seed, err
}

// deriveToken gives each life of a sandbox a token of its own, which tells nothing of the seed or of another's.
func deriveToken(seed []byte, sandbox, podUID string) string {
	mac := hmac.New(sha256.New, seed)
	mac.Write([]byte(tokenPurpose + "\x00" + sandbox + "\x00" + podUID))
	return hex.EncodeToString(mac.Sum(nil))
}
