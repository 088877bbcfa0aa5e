// SPDX-License-Identifier: Apache-2.0

// Package browser opens web pages in the browser of the user.
package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unicode"

	"github.com/consort-go/consort/internal/display"
)

// patience is how long a command may take to report that it cannot open a page. A browser
// that it has started can take as long as it likes.
const patience = 2 * time.Second

// Open opens a page with the command of the system: xdg-open, or open on macOS, or
// rundll32 on Windows. The address must begin with http:// or https://. Open returns after
// at most 2 seconds; the browser can outlive this process.
func Open(ctx context.Context, address string) error {
	page, ok := web(address)
	if !ok {
		return errors.New("only addresses that begin with http:// or https:// are opened")
	}
	name, args := "xdg-open", []string{page.String()}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", page.String()}
	}
	return run(ctx, name, args...)
}

// CanOpen reports whether Open accepts an address.
func CanOpen(address string) bool {
	_, ok := web(address)
	return ok
}

func web(address string) (*url.URL, bool) {
	page, err := url.Parse(address)
	if err != nil || page.Scheme != "http" && page.Scheme != "https" || page.Hostname() == "" {
		return nil, false
	}
	return page, true
}

// Warning warns a person who is to visit a page whose address can be mistaken for another
// host's. It is empty otherwise.
func Warning(address string) string {
	page, ok := web(address)
	if !ok {
		return "This is not the address of a web page."
	}
	switch host := page.Hostname(); {
	case page.User != nil:
		return "The page is on the host " + display.Line(host) + ": the part before the @ does not belong to its name."
	case strings.Contains(host, "xn--") || strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }):
		return "The name of the host has letters of another alphabet and can look like another one: " + display.Line(host)
	}
	return ""
}

// run starts a command, and returns its error if it ends soon.
func run(ctx context.Context, name string, args ...string) error {
	command := exec.Command(name, args...)
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// HasScreen reports whether a browser that is opened could be seen.
func HasScreen() bool {
	switch runtime.GOOS {
	case "windows", "darwin":
		return os.Getenv("SSH_CONNECTION") == ""
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}
