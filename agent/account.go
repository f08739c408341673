package main

import (
	"bufio"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Account is who a command runs as.
type Account struct {
	name     string
	home     string
	uid, gid uint32
	groups   []uint32
}

// lookUpAccount takes "name", "uid", "uid:gid" or "name:group". A bare unknown uid is a valid account.
func lookUpAccount(text string) (*Account, error) {
	user, group, hasGroup := strings.Cut(text, ":")
	account, err := findUser(user)
	if err != nil {
		return nil, err
	}
	if hasGroup {
		gid, err := findGroup(group)
		if err != nil {
			return nil, err
		}
		account.gid = gid
	}
	account.groups = memberships(account)
	return account, nil
}

func findUser(user string) (*Account, error) {
	number, numeric := parseID(user)
	var found *Account
	eachLine("/etc/passwd", 7, func(f []string) bool {
		uid, ok := parseID(f[2])
		if !ok || (f[0] != user && !(numeric && uid == number)) {
			return true
		}
		gid, _ := parseID(f[3])
		found = &Account{name: f[0], home: f[5], uid: uid, gid: gid}
		return false
	})
	if found == nil && numeric {
		found = &Account{name: user, home: "/", uid: number, gid: number}
	}
	if found == nil {
		return nil, fault(http.StatusUnprocessableEntity, "user_unknown", "no user %q in /etc/passwd", user)
	}
	return found, nil
}

func findGroup(group string) (uint32, error) {
	if gid, ok := parseID(group); ok {
		return gid, nil
	}
	var gid uint32
	found := false
	eachLine("/etc/group", 4, func(f []string) bool {
		if f[0] == group {
			gid, found = parseID(f[2])
		}
		return !found
	})
	if !found {
		return 0, fault(http.StatusUnprocessableEntity, "user_unknown", "no group %q in /etc/group", group)
	}
	return gid, nil
}

func memberships(a *Account) []uint32 {
	groups := []uint32{a.gid}
	eachLine("/etc/group", 4, func(f []string) bool {
		for _, member := range strings.Split(f[3], ",") {
			if gid, ok := parseID(f[2]); ok && member == a.name && gid != a.gid {
				groups = append(groups, gid)
			}
		}
		return true
	})
	return groups
}

func parseID(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil
}

func eachLine(path string, fields int, do func([]string) bool) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if f := strings.Split(lines.Text(), ":"); len(f) >= fields && !do(f) {
			return
		}
	}
}

// credential is nil when the account is already the agent's own.
func (a *Account) credential() (*syscall.Credential, error) {
	if a == nil || (int(a.uid) == os.Geteuid() && int(a.gid) == os.Getegid()) {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fault(http.StatusForbidden, "user_not_permitted",
			"the agent runs as uid %d and cannot become %s (%d:%d)", os.Geteuid(), a.name, a.uid, a.gid)
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}, nil
}
