// SPDX-License-Identifier: Apache-2.0

// Package condition evaluates the conditions of rules about the trusted values of a client,
// such as
//
//	"ops" in trusted.roles and trusted.tenant == "acme"
//
// A condition reads nothing but these values. Its cost is bounded by its length times the
// length of the longest list: conditions on the elements of a list cannot be nested.
package condition

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/textcut"
	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/go-bexpr/grammar"
)

// Root is the name under which a condition finds the values.
const Root = "trusted"

// maxText bounds the text of a condition, in bytes, and maxSteps the steps of its parser.
const maxText, maxSteps = 4 << 10, 1 << 17

// Condition is a compiled condition. Its methods may be called concurrently.
type Condition struct {
	mu        sync.Mutex // the evaluator caches regular expressions in its syntax tree
	evaluator *bexpr.Evaluator
}

// Error is a text that is not a condition.
type Error struct {
	Column int // of the text, from 1, in characters
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s, at character %d of the condition", e.Reason, e.Column)
}

// Compile returns the condition of a text. Its error is an [*Error].
func Compile(text string) (*Condition, error) {
	if len(text) > maxText {
		return nil, &Error{1, fmt.Sprintf("the condition has more than %d bytes", maxText)}
	}
	tree, err := grammar.Parse("", []byte(text), grammar.MaxExpressions(maxSteps))
	if err != nil {
		return nil, syntaxError(text, err)
	}
	if err := check(text, tree, false); err != nil {
		return nil, err
	}
	evaluator, err := bexpr.CreateEvaluator(text, bexpr.WithMaxExpressions(maxSteps), bexpr.WithStrictOperatorTypes(true))
	if err != nil {
		return nil, syntaxError(text, err)
	}
	return &Condition{evaluator: evaluator}, nil
}

var position = regexp.MustCompile(`^\d+:\d+ \((\d+)\): `)

// syntaxError returns the error of a text that cannot be parsed.
func syntaxError(text string, err error) *Error {
	offset := 0
	if found := position.FindStringSubmatch(err.Error()); found != nil {
		offset, _ = strconv.Atoi(found[1])
	}
	offset = min(offset, len(text))
	reason := "the condition ends too early"
	if rest := textcut.Bytes(text[offset:], 40); rest != "" {
		reason = fmt.Sprintf("the condition cannot be read from %q on", rest)
	}
	return &Error{column(text, offset), reason}
}

func column(text string, offset int) int { return utf8.RuneCountInString(text[:offset]) + 1 }

// check refuses parts of a condition that could only fail, or cost too much. within says
// that it is a condition on the elements of a list.
func check(text string, part any, within bool) error {
	switch part := part.(type) {
	case *grammar.BinaryExpression:
		if err := check(text, part.Left, within); err != nil {
			return err
		}
		return check(text, part.Right, within)
	case *grammar.UnaryExpression:
		return check(text, part.Operand, within)
	case *grammar.CollectionExpression:
		if within {
			return &Error{1, "a condition on the elements of a list is inside another one"}
		}
		if err := checkSelector(text, part.Selector); err != nil {
			return err
		}
		return check(text, part.Inner, true)
	case *grammar.MatchExpression:
		if err := checkSelector(text, part.Selector); err != nil && !within {
			return err
		}
		if part.Operator != grammar.MatchMatches && part.Operator != grammar.MatchNotMatches {
			return nil
		}
		if _, err := regexp.Compile(part.Value.Raw); err != nil {
			return &Error{column(text, max(0, strings.Index(text, part.Value.Raw))), "the regular expression cannot be read: " + err.Error()}
		}
	}
	return nil
}

// checkSelector refuses names outside of the values.
func checkSelector(text string, of grammar.Selector) error {
	if len(of.Path) >= 2 && of.Path[0] == Root {
		return nil
	}
	name := strings.Join(of.Path, ".")
	return &Error{column(text, max(0, strings.Index(text, name))), fmt.Sprintf("expected a trusted value such as %s.user, and not %s", Root, name)}
}

// Holds reports whether the condition is true for values, by their names, in the form that
// encoding/json decodes. A value that is missing is equal to nothing and contains nothing.
// The error says that the values do not fit the condition, such as a number instead of a
// list.
func (c *Condition) Holds(values map[string]any) (holds bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if recover() != nil { // null in a list
			holds, err = false, errors.New("a list of the values has elements that cannot be compared")
		}
	}()
	return c.evaluator.Evaluate(map[string]any{Root: values})
}
