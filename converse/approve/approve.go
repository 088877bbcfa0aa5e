// SPDX-License-Identifier: Apache-2.0

// Package approve asks a person at the terminal before tools are called.
//
// Its functions are for [converse.Options].Approve:
//
//	converse.New(model, roster, &converse.Options{
//		Approve: approve.ExceptReads(approve.OnTerminal(os.Stdin, os.Stderr)),
//	})
//
// Rules from a file are in package config.
package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/approvals"
	"golang.org/x/term"
)

// ExceptReads allows calls with [converse.Approval].ReadOnly, and lets ask decide about
// all others.
func ExceptReads(ask converse.ApproveFunc) converse.ApproveFunc {
	return func(ctx context.Context, call converse.Approval) (converse.Decision, error) {
		if call.ReadOnly {
			return converse.Allow(), nil
		}
		return ask(ctx, call)
	}
}

// noTerminal is the reason for a denial without a terminal.
const noTerminal = "This call needs approval, but no person can be asked: the program does not run on a terminal."

// OnTerminal returns a function that asks the person at a terminal. It writes the question
// to out and reads one line from in: y or yes allows the call, an empty line, n or no
// denies it, and any other text denies it and is the reason that the model gets. If one of
// the two is not a terminal, each call is denied without a question.
//
// Input that was typed or pasted before the question was shown is dropped, and does not
// answer it. The question waits until the keyboard has been quiet for 0.2 seconds. It shows the
// name under which the model knows the tool and the arguments, but not the tool's
// description, and characters that are invisible or control the terminal as codes such as
// <U+202E>. A question that does not fit the screen is shown in parts, and can be allowed
// after the last one.
//
// Calls of one message are asked about one after another. While a question is open, the
// program must not read from in itself; at other times this function does not read.
// Ctrl-C acts as it always does: a program that does not handle the signal ends. If ctx
// ends, the question does too; on systems other than Unix, the next line from in is then
// lost.
func OnTerminal(in, out *os.File) converse.ApproveFunc {
	p := &person{keyboard: &keyboard{file: in}, out: out, turns: make(chan struct{}, 1)}
	p.turns <- struct{}{}
	return p.approve
}

// person answers one question at a time.
type person struct {
	keyboard *keyboard
	out      *os.File
	turns    chan struct{} // holds a value while no question is open
}

func (p *person) approve(ctx context.Context, call converse.Approval) (converse.Decision, error) {
	if !term.IsTerminal(int(p.keyboard.file.Fd())) || !term.IsTerminal(int(p.out.Fd())) {
		return converse.Deny(noTerminal), nil
	}
	select {
	case <-p.turns:
		defer func() { p.turns <- struct{}{} }()
	case <-ctx.Done():
		return converse.Decision{}, context.Cause(ctx)
	}
	answer, err := p.ask(ctx, call)
	switch {
	case errors.Is(err, io.EOF):
		return converse.Deny("The person said no."), nil
	case err != nil:
		return converse.Decision{}, fmt.Errorf("approve: no answer on the terminal: %w", err)
	}
	switch answer = strings.TrimSpace(answer); strings.ToLower(answer) {
	case "y", "yes":
		return converse.Allow(), nil
	case "", "n", "no":
		return converse.Deny("The person said no."), nil
	}
	return converse.Deny("The person said no: " + answer), nil
}

// ask shows the question, in parts if it does not fit the screen, and returns the answer.
func (p *person) ask(ctx context.Context, call converse.Approval) (string, error) {
	width, height, _ := term.GetSize(int(p.out.Fd())) // 0 if it is unknown
	const more = " [Enter for more, or a reason for no] "
	question := "  run " + approvals.Name(call) + "? [y/N, or a reason for no] "
	pages := approvals.Pages("The model wants to call "+approvals.Describe(call)+"\n"+approvals.Arguments(call), question+"\n"+more, width, height)
	for i, page := range pages[:len(pages)-1] {
		answer, err := p.prompt(ctx, page, fmt.Sprintf("  part %d of %d"+more, i+1, len(pages)))
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "", "y", "yes": // only all of it can be allowed
			if err != nil {
				return "", err
			}
		default:
			return answer, err
		}
	}
	return p.prompt(ctx, pages[len(pages)-1], question)
}

// prompt shows a text and a question, and returns the line that was typed after it.
func (p *person) prompt(ctx context.Context, text, question string) (string, error) {
	if _, err := fmt.Fprintf(p.out, "\n%s\n", text); err != nil {
		return "", err
	}
	if err := p.keyboard.discard(ctx); err != nil {
		return "", err
	}
	if _, err := io.WriteString(p.out, question); err != nil {
		return "", err
	}
	answer, err := p.keyboard.line(ctx)
	if err != nil {
		fmt.Fprintln(p.out)
	}
	return answer, err
}
