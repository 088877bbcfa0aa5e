// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"fmt"
	"strings"
)

// The parameters of the conversation that is killed.
const (
	Exchanges = 5 // exchanges with tool calls

	ReadOnly   = "echo"
	Idempotent = "idempotent_effect"
	Neither    = "effect"
)

// Tools are the tools that the model requests in each exchange, in this order.
var Tools = []string{ReadOnly, Idempotent, Neither}

// Moment is the step of a conversation when its process dies.
type Moment string

// The moments, in order.
const (
	BeforeUser   Moment = "before the message is written"
	AfterUser    Moment = "after the message is written"
	InStream     Moment = "in the model's stream"
	BeforeAnswer Moment = "before the model's answer is written"
	AfterAnswer  Moment = "after the model's answer is written"
	BeforeIntent Moment = "before the intent is written"
	AfterIntent  Moment = "after the intent is written"
	InCall       Moment = "in the call, before its effect"
	AfterEffect  Moment = "after the effect, before the call is answered"
	BeforeResult Moment = "before the result is written"
	AfterResult  Moment = "after the result is written"

	// AfterWait is not in the table: see TestWaiting.
	AfterWait Moment = "after the wait is written"
)

// Point is a place in the conversation.
type Point struct {
	Moment Moment
	// Exchange counts from 1; 0 at the moments of the user's message.
	Exchange int
	// Tool is the tool whose call is at that moment; empty for moments outside of calls.
	Tool string
	// Together runs the three calls of a message in parallel, with all of them at that
	// moment.
	Together bool
	// Ask makes the conversation ask about a doubtful outcome, which is then answered.
	Ask bool
}

// row returns the row of the table that the point belongs to.
func (p Point) row() string {
	row := string(p.Moment)
	if p.Tool != "" {
		row += "; " + map[string]string{ReadOnly: "read-only", Idempotent: "idempotent", Neither: "neither"}[p.Tool]
	}
	switch {
	case p.Together:
		row += ", three at a time"
	case p.Ask:
		row += ", a person is asked"
	}
	return row
}

func (p Point) String() string {
	return strings.ReplaceAll(fmt.Sprintf("%s/%d", p.row(), p.Exchange), " ", "-")
}

// appended reports whether the point is before or after an append.
func (p Point) appended() (before, after bool) {
	switch p.Moment {
	case BeforeUser, BeforeAnswer, BeforeIntent, BeforeResult:
		return true, false
	case AfterUser, AfterAnswer, AfterIntent, AfterResult, AfterWait:
		return false, true
	}
	return false, false
}

// Points returns all points in the order of the table: for the given exchanges, which may
// be 1 to 5, and for the last exchange, which has no tools.
func Points(exchanges ...int) []Point {
	points := []Point{{Moment: BeforeUser}, {Moment: AfterUser}}
	for _, moment := range []Moment{InStream, BeforeAnswer, AfterAnswer} {
		for _, exchange := range append(exchanges, Exchanges+1) {
			points = append(points, Point{Moment: moment, Exchange: exchange})
		}
	}
	calls := func(moment Moment, together, ask bool, tools ...string) {
		for _, tool := range tools {
			for _, exchange := range exchanges {
				points = append(points, Point{Moment: moment, Exchange: exchange, Tool: tool, Together: together, Ask: ask})
			}
		}
	}
	for _, moment := range []Moment{BeforeIntent, AfterIntent, InCall, AfterEffect, BeforeResult, AfterResult} {
		calls(moment, false, false, Tools...)
	}
	for _, moment := range []Moment{InCall, AfterEffect} {
		calls(moment, true, false, Tools...)
	}
	for _, moment := range []Moment{AfterIntent, InCall, AfterEffect, BeforeResult} {
		calls(moment, false, true, Neither)
	}
	return points
}
