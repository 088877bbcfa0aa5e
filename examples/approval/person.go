// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/consort-go/consort/converse"
)

// person answers one question at a time.
type person struct {
	lines chan string
	turn  chan struct{} // holds a value while no question is open
}

func newPerson() *person {
	p := &person{lines: make(chan string), turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	go func() { // ends with the input or the program
		defer close(p.lines)
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			p.lines <- input.Text()
		}
	}()
	return p
}

// approve is called concurrently for all invocations of a message.
func (p *person) approve(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
	if !ask.Definition.Hints.MayDestroy() {
		return converse.Allow(), nil
	}
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return converse.Decision{}, ctx.Err()
	}
	fmt.Printf("%s %s %s? [y/N] ", ask.Ensemble, ask.Tool, ask.Arguments)
	select {
	case line := <-p.lines:
		if line == "y" {
			return converse.Allow(), nil
		}
		return converse.Deny("the person at the terminal said no"), nil
	case <-ctx.Done():
		return converse.Decision{}, ctx.Err()
	}
}
