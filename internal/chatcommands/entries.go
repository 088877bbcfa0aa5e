// SPDX-License-Identifier: Apache-2.0

package chatcommands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/readable"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/transcript"
)

// listEntries prints each entry as one line.
func (c *Chat) listEntries(ctx context.Context, _ string) error {
	all, err := c.entries(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		c.faint("The conversation is empty.")
		return nil
	}
	width := len(strconv.Itoa(len(all)))
	for i, entry := range all {
		c.Screen.Print(fmt.Sprintf("%*d  %s\n", width, i+1, terminal.HistoryLine(c.Screen.Results, entry)))
	}
	return nil
}

// show prints an entry in full: a call together with its result.
func (c *Chat) show(ctx context.Context, argument string) error {
	all, err := c.entries(ctx)
	if err != nil {
		return err
	}
	at := -1
	if argument != "" {
		n, err := c.number(argument, len(all))
		if err != nil {
			return err
		}
		at = n - 1
	} else if at = lastCall(all); at < 0 {
		return errors.New("no tool has been called yet; /show N shows another entry, and /history lists them")
	}
	for _, i := range related(all, at) {
		part := transcript.PartOf(transcript.Numbered{Number: i + 1, Canister: all[i]}, time.Local)
		paint := c.Screen.Results
		c.Screen.Print(strings.TrimRight(paint.Name(fmt.Sprintf("%d %s", part.Number, part.Heading()))+"  "+paint.Faint(part.When()), " ") + "\n")
		if text := strings.TrimRight(part.Text, "\n"); text != "" {
			c.Screen.PrintSafe(text + "\n")
		}
	}
	return nil
}

// lastCall returns the index of the last invocation, or -1.
func lastCall(all []canister.Canister) int {
	for i, entry := range slices.Backward(all) {
		if entry.Kind() == canister.KindInvocation {
			return i
		}
	}
	return -1
}

// related returns the indexes of an entry and of the others of its call.
func related(all []canister.Canister, at int) []int {
	call := callOf(all[at])
	if call == "" {
		return []int{at}
	}
	var found []int
	for i, entry := range all {
		if _, isIntent := entry.(canister.Intent); callOf(entry) == call && (!isIntent || i == at) {
			found = append(found, i)
		}
	}
	return found
}

// callOf returns the ID of the invocation that an entry belongs to, or "".
func callOf(entry canister.Canister) string {
	switch entry := entry.(type) {
	case canister.Invocation:
		return entry.ID
	case canister.Result:
		return entry.Invocation
	case canister.Intent:
		return entry.Invocation
	case canister.Wait:
		return entry.Invocation
	case canister.User, canister.Assistant, canister.Supervisor, canister.Document, canister.Answer:
	}
	return ""
}

// formats are the formats of exports by the ends of file names.
var formats = map[string]string{
	".md": string(readable.Markdown), ".markdown": string(readable.Markdown),
	".html": string(readable.HTML), ".htm": string(readable.HTML),
	".jsonl": histories.Lines,
}

// export writes the conversation to a new file.
func (c *Chat) export(ctx context.Context, path string) error {
	id := c.Session.Conversation().ID()
	if path == "" {
		path = strings.Map(func(r rune) rune {
			if r == '/' || r == '\\' || r == ':' {
				return '-'
			}
			return r
		}, id) + ".md"
	}
	format, known := formats[strings.ToLower(filepath.Ext(path))]
	if !known {
		return fmt.Errorf("the end of the name says the format: expected .md, .html or .jsonl, and not %s", display.Line(path))
	}
	store, err := c.kept(ctx)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already; name another file", display.Line(path))
	}
	if err != nil {
		return err
	}
	_, err = histories.Write(ctx, redacting{file, c.Assembly.Redact}, store, format, readable.Options{Redact: c.Assembly.Redact}, id)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	c.faint("The conversation is in %s.", display.Line(path))
	return nil
}

// kept returns a store that has the conversation.
func (c *Chat) kept(ctx context.Context) (history.Store, error) {
	talk := c.Session.Conversation()
	if talk.Length() == 0 {
		return nil, errors.New("the conversation is empty")
	}
	if store := c.Session.Store(); store != nil {
		return store, nil
	}
	store := history.NewMemory()
	return store, store.Append(ctx, talk.ID(), 0, talk.History()...)
}

// redacting is a writer that removes secrets.
type redacting struct {
	file   *os.File
	redact func(string) string
}

func (w redacting) Write(text []byte) (int, error) {
	if _, err := w.file.WriteString(w.redact(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// maxCopy bounds the text that /copy copies, in bytes: 75,000 in base64. Some terminals
// ignore longer texts.
const maxCopy = 56_000

// copy copies the last answer to the clipboard of the terminal.
func (c *Chat) copy(ctx context.Context, _ string) error {
	all, err := c.entries(ctx)
	if err != nil {
		return err
	}
	for _, entry := range slices.Backward(all) {
		said, ok := entry.(canister.Assistant)
		if !ok || canister.TextOf(said.Content) == "" {
			continue
		}
		whole := display.Text(canister.TextOf(said.Content))
		text := textcut.Prefix(whole, maxCopy)
		if err := c.Screen.Copy(text); err != nil {
			return err
		}
		if len(text) < len(whole) {
			c.Screen.Note("The first %d of %d bytes of the last answer are sent to the clipboard; a terminal takes no more. /export writes all of it to a file.", len(text), len(whole))
			return nil
		}
		c.faint("The last answer, of %d characters, is sent to the clipboard. Not every terminal accepts it.", utf8.RuneCountInString(text))
		return nil
	}
	return errors.New("there is no answer to copy yet")
}
