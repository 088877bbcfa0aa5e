// SPDX-License-Identifier: Apache-2.0

//go:build unix

package readme

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/consort-go/consort/internal/testing/realservers"
)

// patience is how long a block may take; the first one compiles the command.
const patience = 3 * time.Minute

// Pages that write files are followed like a reader would: their files are written, their
// commands run one after another in one shell, and the output is the one shown.
func TestPagesRun(t *testing.T) {
	modules := realservers.Need(t).Modules()
	bin := t.TempDir()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "go", "install", "./cmd/consort", "./internal/testing/openaiserver/openaiserverd")
	install.Dir, install.Env = top, append(raced.Unraced(), "GOBIN="+bin)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, page := range pages(t) {
		all := blocksOf(page)
		if !slices.ContainsFunc(all, func(b block) bool { return strings.HasPrefix(b.info, "file=") }) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newReader(t, bin, modules)
			if name == "docs/tutorial.md" { // it begins with the installation
				if err := r.run("cd "+top+"\n", ""); err != nil {
					t.Fatal(err)
				}
			}
			for i, b := range all {
				shown := "…\n"
				if i+1 < len(all) && all[i+1].language == "text" {
					shown = all[i+1].text
				}
				if err := r.do(t, b, shown); err != nil {
					t.Fatalf("%s, line %d: %v", name, b.line, err)
				}
			}
		})
	}
}

// reader follows the instructions of a page, in its own home directory.
type reader struct {
	home  string
	env   []string
	shell *terminal
	ports map[string]string // those of the page, and their replacements here
}

func newReader(t *testing.T, bin, modules string) *reader {
	t.Helper()
	r := &reader{home: raced.Home(t), ports: map[string]string{}}
	// npx finds the packages that are installed, and does not look elsewhere.
	if err := os.Symlink(modules, filepath.Join(r.home, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.home, ".npmrc"), []byte("offline=true\nupdate-notifier=false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = append(raced.Unraced(), "HOME="+r.home, "GOENV=", "TZ=UTC", "XDG_STATE_HOME=", "OPENAI_API_KEY=", "OPENAI_BASE_URL=",
		"GOBIN="+bin, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	r.shell = open(t, r.env, r.home, `while IFS= read -r script; do source "$script" < /dev/null; printf '\036%d\n' $?; done`)
	return r
}

var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// do executes a block; shown is its expected output.
func (r *reader) do(t *testing.T, b block, shown string) error {
	text := port.ReplaceAllStringFunc(b.text, r.freePort)
	kind, name, _ := strings.Cut(b.info, "=")
	switch {
	case kind == "file":
		return r.run(fmt.Sprintf("cat > %s << 'END OF FILE'\n%sEND OF FILE\n", name, text), "")
	case kind == "append":
		return r.run(fmt.Sprintf("cat >> %s << 'END OF FILE'\n%sEND OF FILE\n", name, text), "")
	case b.language != "sh" || b.info == "not-run":
		return nil
	case b.info == "terminal":
		side := open(t, r.env, r.home, text)
		return side.wait(func(printed string) bool { return matches(shown, r.asShown(printed)) })
	case b.info == "":
		return r.run(text, shown)
	}
	return fmt.Errorf("what does %q mean?", b.info)
}

// freePort returns an address that is free, for an address of the page.
func (r *reader) freePort(address string) string {
	if r.ports[address] == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return address
		}
		defer listener.Close()
		r.ports[address] = listener.Addr().String()
	}
	return r.ports[address]
}

// killed is what bash says of a process that was killed; terminals say it in other ways.
var killed = regexp.MustCompile(`(?m)^.*: line \d+: +\d+ Killed.*\n`)

// asShown returns an output as a page shows it.
func (r *reader) asShown(printed string) string {
	for shown, here := range r.ports {
		printed = strings.ReplaceAll(printed, here, shown)
	}
	return killed.ReplaceAllString(strings.ReplaceAll(printed, r.home, "~"), "")
}

// run runs commands in the shell of the page.
func (r *reader) run(commands, shown string) error {
	file, err := os.CreateTemp(r.home, ".commands-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(commands)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	r.shell.clear()
	if _, err := fmt.Fprintln(r.shell.stdin, file.Name()); err != nil {
		return err
	}
	goesOn := strings.HasSuffix(commands, "&\n")
	status, printed := "", ""
	err = r.shell.wait(func(all string) bool {
		before, after, done := strings.Cut(all, "\x1e")
		status, after, _ = strings.Cut(after, "\n")
		printed = r.asShown(before + after)
		return done && (!goesOn || matches(shown, printed))
	})
	switch {
	case err != nil:
		return err
	case status != "0":
		return fmt.Errorf("the status is %s:\n%s", status, printed)
	case !matches(shown, printed):
		return fmt.Errorf("this is printed:\n%s", printed)
	}
	return nil
}

// terminal is a bash with its output so far.
type terminal struct {
	stdin io.Writer
	lines chan string // the output as it arrives; closed at the end
	all   strings.Builder
}

// open starts bash in a process group of its own, which is interrupted, as by Ctrl-C,
// when the test ends.
func open(t *testing.T, env []string, dir, script string) *terminal {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Env, cmd.Dir = env, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	term := &terminal{stdin: stdin, lines: make(chan string)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(term.lines)
		for buffer := make([]byte, 4096); ; {
			n, err := read.Read(buffer)
			if err != nil {
				return
			}
			select {
			case term.lines <- string(buffer[:n]):
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		stdin.Close()
		syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		late := time.AfterFunc(time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer late.Stop()
		cancel()
		for range term.lines { // until everything that writes there has gone
		}
		cmd.Wait()
		read.Close()
	})
	return term
}

func (term *terminal) clear() { term.all.Reset() }

// wait waits until the output is complete enough.
func (term *terminal) wait(enough func(string) bool) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !enough(term.all.String()) {
		select {
		case more, ok := <-term.lines:
			if !ok {
				return fmt.Errorf("it ended:\n%s", term.all.String())
			}
			term.all.WriteString(more)
		case <-timeout.C:
			return fmt.Errorf("after %v this is printed:\n%s", patience, term.all.String())
		}
	}
	return nil
}
