// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/converse/engine"
)

// Cursor names an event of a conversation: a reader at a cursor has not seen the events
// after it. It means the same on every machine, because it names a position of
// the log. The zero value is the beginning of the conversation.
//
// Its text is the id of a server-sent event: "12" is the canister at position 12,
// "12.3.7" the delta 7 of attempt 3 after that canister, and a suffix after "-" means
// that the end of the turn, or the failure of that attempt or its end by a budget, was reported there.
type Cursor struct {
	// Position is the number of canisters of the log that the reader has seen.
	Position int

	attempt int64 // of the last delta or failure, if isDelta
	index   int
	isDelta bool
	ended   string // names the end that was reported; may be empty
}

// maxCursor bounds the text of a cursor, in bytes.
const maxCursor = 80

// String returns the text that ParseCursor reads.
func (c Cursor) String() string {
	text := strconv.Itoa(c.Position)
	if c.isDelta {
		text += "." + strconv.FormatInt(c.attempt, 10) + "." + strconv.Itoa(c.index)
	}
	if c.ended != "" {
		text += "-" + c.ended
	}
	return text
}

// ParseCursor reads the text of a cursor. The empty text is the beginning.
func ParseCursor(text string) (Cursor, error) {
	var c Cursor
	if text == "" {
		return c, nil
	}
	place, ended, hasEnd := strings.Cut(text, "-")
	parts := strings.Split(place, ".")
	isWrong := len(text) > maxCursor || hasEnd && !isEndName(ended) || len(parts) != 1 && len(parts) != 3
	numbers := make([]int64, 3)
	for i, part := range parts {
		if isWrong {
			break
		}
		n, err := strconv.ParseUint(part, 10, 53)
		isWrong = err != nil || strconv.FormatUint(n, 10) != part
		numbers[i] = int64(n)
	}
	if isWrong || numbers[0] > maxPosition || numbers[2] > maxPosition {
		return c, fmt.Errorf("httpapi: %q is not the id of an event", text[:min(len(text), maxCursor)])
	}
	c.Position, c.attempt, c.index = int(numbers[0]), numbers[1], int(numbers[2])
	c.isDelta, c.ended = len(parts) == 3, ended
	return c, nil
}

// maxPosition bounds the numbers of a cursor, so that they fit an int everywhere.
const maxPosition = 1<<31 - 1

// reported names the end of a turn by anything but a failure or a budget. A position has one such end at most.
const reported = "end"

func isEndName(text string) bool {
	if text == reported {
		return true
	}
	n, err := strconv.ParseUint(text, 16, 32)
	return err == nil && fmt.Sprintf("%08x", n) == text
}

// endName names an end among those at one position.
func endName(ended engine.Ended) string {
	if ended.Error == "" && ended.Attempt == 0 {
		return reported
	}
	hash := fnv.New32a()
	_, _ = fmt.Fprint(hash, ended.Error, ended.Again.UTC().Format(time.RFC3339Nano)) // never fails
	return fmt.Sprintf("%08x", hash.Sum32())
}

// at returns the cursor of an event that follows c.
func (c Cursor) at(event engine.Event) Cursor {
	switch e := event.(type) {
	case engine.Added:
		return Cursor{Position: e.Position}
	case engine.Delta:
		return Cursor{Position: e.Position, attempt: e.Attempt, index: e.Index, isDelta: true}
	case engine.Ended:
		if e.Attempt > 0 && (!c.isDelta || c.attempt != e.Attempt) {
			c = Cursor{Position: c.Position, attempt: e.Attempt, isDelta: true}
		}
		c.ended = endName(e)
	}
	return c
}

// precedes reports whether a reader at c has not seen an event with the given cursor.
func (c Cursor) precedes(event Cursor) bool {
	switch {
	case event.Position != c.Position:
		return event.Position > c.Position
	case event.ended == reported && c.ended == reported:
		return false
	case event.ended != "" && c.isDelta && event.isDelta && event.attempt != c.attempt:
		return event.attempt > c.attempt // the ends of two attempts can be the same failure
	case event.ended != "":
		return event.ended != c.ended
	case !event.isDelta:
		return false
	case !c.isDelta || event.attempt != c.attempt:
		return !c.isDelta || event.attempt > c.attempt
	case c.ended != "" && c.ended != reported:
		return false // the attempt has failed
	}
	return event.index > c.index
}

// errUnknownPosition says that the log is shorter than a cursor says.
var errUnknownPosition = errors.New("httpapi: the conversation has no such position")
