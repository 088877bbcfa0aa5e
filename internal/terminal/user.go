// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/invoker"
	"golang.org/x/term"
)

// User is the person at the terminal: their messages, and their answers to the questions
// of models and servers. Its methods may be called concurrently; one question is asked at
// a time.
type User struct {
	screen *Screen
	editor *lineEditor
	form   *questionForm
}

// NewUser returns the person who types on stdin. A value from interrupts, such as Ctrl-C,
// interrupts the question that is open, which returns [ErrInterrupted]; interrupt is then
// called too, unless the question was for a message.
func NewUser(s *Screen, stdin *os.File, interrupts <-chan os.Signal, interrupt func()) *User {
	editor := newLineEditor(s, stdin, interrupts)
	return &User{screen: s, editor: editor, form: &questionForm{Screen: s, Ask: editor.question, Interrupt: interrupt, Open: browser.Open}}
}

// Interactive reports whether the user types on a terminal and sees questions there.
func (u *User) Interactive() bool { return u.editor.keyboard != nil && isAnyTerminal(u.screen.Stderr) }

// Message asks for a message, which the line editor remembers. The prompt is shown only
// on a terminal. The error is [ErrInterrupted] after Ctrl-C and io.EOF at the end of the
// input.
func (u *User) Message(ctx context.Context, prompt string) (string, error) {
	return u.editor.read(ctx, prompt, true)
}

// AskApproval asks the user whether to run a tool call. At the end of the input, the
// answer is [approvals.Later] if that is possible. A question that does not fit the screen
// is shown in pages.
func (u *User) AskApproval(ctx context.Context, ask approvals.Question) (approvals.Answer, error) {
	width, height, _ := term.GetSize(int(u.screen.Stderr.Fd()))
	if width <= 0 || height <= 0 { // it is unknown
		width, height = 80, 24
	}
	ask.Arguments = redact.JSON(ask.Arguments, u.screen.redacted) // before lines divide a secret
	about, prompt := u.approvalText(ask, width-1)
	pages := []string{about}
	if u.editor.keyboard != nil {
		pages = approvals.Pages(about, prompt, width, height)
	}
	for i, page := range pages {
		last := i == len(pages)-1
		if last {
			page += prompt
		} else {
			page += fmt.Sprintf("\n  part %d of %d: Enter shows more, n or a reason denies: ", i+1, len(pages))
		}
		answer, err := u.editor.question(ctx, page)
		if ask.Later && errors.Is(err, io.EOF) {
			return approvals.Answer{Choice: approvals.Later}, nil
		}
		if err != nil {
			return approvals.Answer{}, u.form.unanswered(ctx, err)
		}
		said := parseApproval(ask, answer)
		switch said.Choice {
		case approvals.Once, approvals.Conversation, approvals.Always: // only all of it can be allowed
			if last {
				return said, nil
			}
		default:
			if last || strings.TrimSpace(answer) != "" {
				return said, nil
			}
		}
	}
	return approvals.Answer{}, nil
}

// approvalText returns the description of a call, for a number of columns, and the question
// after it. Both have the name of the tool, because long arguments can move the beginning
// off the screen.
func (u *User) approvalText(ask approvals.Question, columns int) (about, prompt string) {
	paint := u.screen.Notes
	style := rendering.StyleFor(os.Getenv, columns)
	style.Color = paint.On
	about = "\n" + strings.Join(rendering.Question(style, ask.Approval, ask.ReadOnly), "\n")
	var text strings.Builder
	if ask.Changed {
		fmt.Fprintf(&text, "\n  %s", paint.Bad(approvals.ChangedWarning))
	}
	answers, keys := "y once, c for this conversation", "y/c"
	if ask.Always {
		answers, keys = answers+", a always for this tool", keys+"/a"
	}
	if ask.Later {
		answers, keys = answers+", later", keys+"/later"
	}
	fmt.Fprintf(&text, "\n  %s: %s\n  run it? [%s/N] ", paint.Name(approvals.Name(ask.Approval)), paint.Faint(answers+", n or a reason for no"), keys)
	return about, text.String()
}

// parseApproval parses the answer of the user. An answer that is not possible, like any
// other text, is a reason for no.
func parseApproval(ask approvals.Question, answer string) approvals.Answer {
	answer = strings.TrimSpace(answer)
	switch word := strings.ToLower(answer); {
	case word == "y", word == "yes":
		return approvals.Answer{Choice: approvals.Once}
	case word == "c":
		return approvals.Answer{Choice: approvals.Conversation}
	case word == "a" && ask.Always:
		return approvals.Answer{Choice: approvals.Always}
	case word == "later" && ask.Later:
		return approvals.Answer{Choice: approvals.Later}
	case word == "", word == "n", word == "no":
		return approvals.Answer{}
	}
	return approvals.Answer{Reason: answer}
}

// Elicit puts a server's question to the user.
func (u *User) Elicit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	return u.form.Elicit(ctx, ask)
}
