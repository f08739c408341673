package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// The command-line client of a task's tools: for programs inside that have nothing but a shell.

const (
	toolVersion = "1"
	toolFailed  = 1
	toolMisused = 2
	toolUsage   = `usage: orchard-tool COMMAND

  list [--json]              the tools there are
  help NAME                  what a tool takes
  NAME                       call a tool without arguments
  NAME --key value ...       call it with these arguments, typed as its schema says
  NAME '{"key": ...}'        call it with a JSON object
  NAME -                     the same, read from standard input
  call NAME ...              call a tool that has the name of one of these commands

Text goes to standard output, a picture into a file whose path is printed. Exits with 1 when the tool failed, with 2
when it was called wrongly.
`
)

var errMisused = errors.New("misused")

// misused marks what the caller can mend by calling otherwise.
func misused(format string, parts ...any) error {
	return fmt.Errorf("%w: %s", errMisused, fmt.Sprintf(format, parts...))
}

// toolStreams are the three that every program has.
type toolStreams struct {
	in       io.Reader
	out, err io.Writer
}

// toolMain returns the exit code.
func toolMain(args []string, streams toolStreams) int {
	err := toolCommand(args, streams)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errMisused):
		fmt.Fprintln(streams.err, "orchard-tool:", strings.TrimPrefix(err.Error(), errMisused.Error()+": "))
		return toolMisused
	default:
		fmt.Fprintln(streams.err, strings.TrimRight(err.Error(), "\n"))
		return toolFailed
	}
}

func toolCommand(args []string, streams toolStreams) error {
	if len(args) == 0 {
		return misused("what shall be done?\n\n%s", toolUsage)
	}
	name, rest := args[0], args[1:]
	switch name {
	case "version":
		_, err := fmt.Fprintln(streams.out, toolVersion)
		return err
	case "-h", "--help":
		_, err := io.WriteString(streams.out, toolUsage)
		return err
	}
	client, err := newToolClient(os.Getenv("ORCHARD_TOOLS_URL"), os.Getenv("ORCHARD_TOOLS_KEY"))
	if err != nil {
		return err
	}
	switch name {
	case "list":
		return listTools(client, rest, streams.out)
	case "help":
		return describeTool(client, rest, streams.out)
	case "call":
		if len(rest) == 0 {
			return misused("call which tool? `orchard-tool list` names them")
		}
		name, rest = rest[0], rest[1:]
	}
	if len(rest) == 1 && (rest[0] == "-h" || rest[0] == "--help") {
		return describeTool(client, []string{name}, streams.out)
	}
	arguments, err := toolArguments(client, name, rest, streams.in)
	if err != nil {
		return err
	}
	result, err := client.call(name, arguments)
	if err != nil {
		return err
	}
	return result.show(streams.out)
}
