// SPDX-License-Identifier: Apache-2.0

// Package readable writes stored conversations for people to read, as Markdown or as a page
// of HTML.
//
// The words of people and models are rendered as Markdown. Everything else, above all the
// output of tools, is text. Nothing in a conversation can run a script, load anything from
// elsewhere, or look like a part of the document around it.
package readable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/transcript"
)

// Format is an output format of [Export].
type Format string

// The formats.
const (
	Markdown Format = "markdown" // CommonMark with the tables, lists and links of GitHub
	HTML     Format = "html"     // one page, which runs nothing and loads nothing
)

// Options configure [Export].
type Options struct {
	// Zone is the time zone of all times; nil means [time.Local].
	Zone *time.Location
	// Full adds the notes of the runtime, which are intents, waits and answers, and
	// messages without content.
	Full bool
	// Redact removes secrets from the texts of the conversation before they are rendered;
	// nil removes none.
	Redact func(string) string
	// Missing is called with the error about a conversation that does not exist, which is
	// omitted; if it is nil, Export ends with this error.
	Missing func(error)
}

// form writes conversations in one format.
type form interface {
	begin(first history.Info, isOne bool) string
	conversation(history.Info) string
	message(message) string
	call(call) string
	end() string
}

// Export writes the conversations with the given IDs, in their order. An ID
// that the store does not know is an error that has [history.ErrNotFound] in its chain, see
// [Options.Missing]. Export writes nothing if all of them are missing.
//
// It writes each message, and each call with its result, with a single Write, so that w can
// inspect the text. It holds no more than the calls of one message in memory.
func Export(ctx context.Context, w io.Writer, store history.Store, format Format, options Options, ids ...string) error {
	options.Zone = cmp.Or(options.Zone, time.Local)
	if options.Redact == nil {
		options.Redact = func(text string) string { return text }
	}
	r := reader{options}
	var as form
	switch format {
	case Markdown:
		as = document{r}
	case HTML:
		as = &page{reader: r}
	default:
		return fmt.Errorf("unknown format %q: want markdown or html", string(format))
	}
	put := func(text string) error {
		if text == "" {
			return nil
		}
		_, err := io.WriteString(w, text)
		return err
	}
	begun := false
	for _, id := range ids {
		info, err := store.Info(ctx, id)
		if err != nil {
			err = fmt.Errorf("conversation %q: %w", id, err)
			if options.Missing == nil || !errors.Is(err, history.ErrNotFound) {
				return err
			}
			options.Missing(err)
			continue
		}
		if !begun {
			begun, err = true, put(as.begin(info, len(ids) == 1))
		}
		if err == nil {
			err = put(as.conversation(info))
		}
		if err != nil {
			return err
		}
		for e, err := range transcript.Entries(transcript.Canisters(ctx, store, info)) {
			if err == nil {
				err = put(r.entry(as, e))
			}
			if err != nil {
				return err
			}
		}
	}
	if !begun {
		return nil
	}
	return put(as.end())
}

// reader prepares the parts of a conversation, which are the same in all formats.
type reader struct{ Options }

// message is a message or a note of the runtime.
type message struct {
	transcript.Part          // with texts that are safe to print
	heading         string   // without number and time
	remarks         []string // about it, such as the name of the model
	contents        []canister.Content
	isMarkdown      bool // the text is from a person or a model
	hardWraps       bool // each line break counts, as where people type
}

// call is a call with its result.
type call struct {
	transcript.Part
	remarks   []string // such as how long it took
	arguments string   // JSON, or the text that the model wrote instead
	changed   string   // the arguments that the call was made with, if they are others
	folded    string   // the outcome of a search, or the calls of a program, in a line; empty for other calls
	notes     []transcript.Part
	calls     []call   // that a program made
	result    *message // nil before the result
}

// entry returns an entry in a format; "" leaves it out.
func (r reader) entry(as form, e transcript.Entry) string {
	if invocation, ok := e.Canister.(canister.Invocation); ok {
		return as.call(r.call(e, invocation))
	}
	m := r.message(e.Numbered)
	isNote := !canister.Message(e.Canister)
	isEmpty := e.Kind() == canister.KindAssistant && len(m.contents) == 0 && m.remarks == nil
	if !r.Full && (isNote || isEmpty) {
		return ""
	}
	return as.message(m)
}

// message prepares a message, a note, or a result.
func (r reader) message(n transcript.Numbered) message {
	m := message{Part: r.part(n), contents: canister.ContentOf(n.Canister)}
	switch c := n.Canister.(type) {
	case canister.User:
		m.heading, m.isMarkdown, m.hardWraps = "User", true, true
	case canister.Assistant:
		m.heading, m.isMarkdown, m.remarks = "Assistant", true, remarks(ends[c.Finish])
		if len(c.Content) > 0 {
			m.remarks = remarks(append([]string{r.line(c.Model)}, m.remarks...)...)
		}
	case canister.Supervisor:
		m.heading, m.isMarkdown, m.hardWraps = "Instructions", true, true
	case canister.Document:
		m.heading, m.remarks = "Document", remarks(r.line(c.Title), r.line(c.URI))
	case canister.Result:
		m.heading, m.remarks = "Result", remarks(r.line(c.Code))
	default:
		m.heading = strings.ToUpper(string(n.Kind()[:1])) + string(n.Kind()[1:])
		m.remarks = remarks(m.About)
		m.contents = canister.Texts(m.Text)
	}
	return m
}

// ends are the reasons why a model stopped that a reader should know.
var ends = map[canister.Finish]string{
	canister.FinishLength:        "cut off at the limit of its length",
	canister.FinishContentFilter: "partly held back by a filter",
	canister.FinishRefusal:       "declined",
	canister.FinishCancelled:     "cancelled",
}

// call prepares a call.
func (r reader) call(e transcript.Entry, invocation canister.Invocation) call {
	c := call{Part: r.part(e.Numbered), remarks: e.Decisions(r.Zone), arguments: r.json(invocation.Arguments)}
	if took, known := e.Took(); known {
		c.remarks = append([]string{seconds(took)}, c.remarks...)
	}
	if changed := e.Changed(); changed != "" {
		c.changed = r.json(changed)
	}
	for i, remark := range c.remarks {
		c.remarks[i] = r.line(remark)
	}
	c.folded = r.line(e.Folded())
	for _, inner := range e.Calls {
		c.calls = append(c.calls, r.call(inner, inner.Canister.(canister.Invocation)))
	}
	if r.Full {
		for _, note := range e.Notes {
			c.notes = append(c.notes, r.part(note))
		}
	}
	if e.Result.Canister != nil {
		result := r.message(e.Result)
		c.result = &result
	}
	return c
}

// facts returns the metadata of a conversation in lines.
func (r reader) facts(info history.Info) []string {
	facts := transcript.Facts(info, r.Zone)
	if len(info.Tags) > 0 {
		facts = append(facts, "tags "+strings.Join(info.Tags, ", "))
	}
	for i, fact := range facts {
		facts[i] = r.line(fact)
	}
	return facts
}

// part returns the part of a canister without secrets, and safe to print.
func (r reader) part(n transcript.Numbered) transcript.Part {
	p := transcript.PartOf(n, r.Zone)
	p.About, p.Text = r.line(p.About), r.text(p.Text)
	return p
}

// text returns a text without secrets and without invisible characters.
func (r reader) text(text string) string { return display.Text(r.Redact(text)) }

// line is like text, on one line.
func (r reader) line(text string) string { return display.Line(r.Redact(text)) }

// json returns a JSON text, indented, without secrets and without invisible characters.
func (r reader) json(text string) string { return display.JSON([]byte(r.Redact(text))) }

// remarks returns the texts that are not empty.
func remarks(texts ...string) []string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// seconds formats how long a call took.
func seconds(took time.Duration) string {
	if took < time.Minute {
		return fmt.Sprintf("%.2f s", took.Seconds())
	}
	return took.Round(time.Second).String()
}
