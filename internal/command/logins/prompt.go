// SPDX-License-Identifier: Apache-2.0

package logins

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/mcpadapter/login"
)

// Prompt says how the login at a server reaches the person.
func Prompt(screen *terminal.Screen, stdin *os.File, name string, noBrowser bool) *login.Prompt {
	prompt := &login.Prompt{Visit: func(ctx context.Context, address string) error {
		opened := !noBrowser && browser.HasScreen() && browser.Open(ctx, address) == nil
		if opened {
			screen.Note("A browser opens to log in at %s. If it does not, open this address:\n\n%s\n", display.Line(name), display.Line(address))
		} else {
			screen.Note("To log in at %s, open this address in a browser:\n\n%s\n", display.Line(name), display.Line(address))
		}
		return ctx.Err()
	}}
	if !noBrowser {
		return prompt
	}
	prompt.Enter = func(_ context.Context, code login.Code) error {
		screen.Note("To log in at %s, open %s on any device and enter the code %s", display.Line(name), code.Address, code.Code)
		if code.Complete != "" {
			screen.Note("or open %s", code.Complete)
		}
		return nil
	}
	prompt.Paste = func(ctx context.Context) (string, error) {
		screen.Note("On another machine, the browser ends at a page that it cannot open. Paste its address here:")
		address, err := terminal.NewUser(screen, stdin, nil, nil).Message(ctx, "> ")
		if errors.Is(err, io.EOF) { // wait: the browser may be on this machine
			<-ctx.Done()
			err = ctx.Err()
		}
		return address, err
	}
	return prompt
}
