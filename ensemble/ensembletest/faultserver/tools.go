// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// toolDefinitions returns the tools of every server.
func toolDefinitions() []string {
	const (
		reads     = `"annotations":{"readOnlyHint":true,"openWorldHint":false}`
		writes    = `"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":false}`
		twice     = `"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`
		textInput = `"inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
		keyInput  = `"inputSchema":{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`
		noInput   = `"inputSchema":{"type":"object","properties":{}}`
	)
	return []string{
		`{"name":"echo","description":"Answers with the text.",` + textInput + `,` + reads + `}`,
		`{"name":"effect","description":"Has an effect each time it is called.",` + keyInput + `,` + writes + `}`,
		`{"name":"idempotent_effect","description":"Has an effect that may safely be repeated.",` + keyInput + `,` + twice + `}`,
		`{"name":"wait","description":"Waits until it is cancelled.",` + noInput + `,` + reads + `}`,
		`{"name":"progress","description":"Reports each of some steps.","inputSchema":{"type":"object","properties":{"steps":{"type":"integer","minimum":1}}},` + reads + `}`,
		`{"name":"big","description":"Answers with a text of the given number of bytes.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer","minimum":0}},"required":["bytes"]},` + reads + `}`,
		`{"name":"fail","description":"Fails with the text.",` + textInput + `,` + reads + `}`,
	}
}

// toolFunctions returns the implementations of the tools. They return nil when the
// client no longer waits for an answer.
func toolFunctions() map[string]func(x *exchange, arguments json.RawMessage) *answer {
	return map[string]func(x *exchange, arguments json.RawMessage) *answer{
		"echo":              callEcho,
		"effect":            callEffect,
		"idempotent_effect": callEffect,
		"wait":              callWait,
		"progress":          callProgress,
		"big":               callBig,
		"fail":              callFail,
	}
}

func textResult(s string) *answer {
	return &answer{result: text(`{"content":[{"type":"text","text":` + quote(s) + `}]}`)}
}

func callEcho(_ *exchange, arguments json.RawMessage) *answer {
	var a struct{ Text *string }
	if err := json.Unmarshal(arguments, &a); err != nil || a.Text == nil {
		return failf(codeInvalidParams, "echo needs a text")
	}
	return textResult(*a.Text)
}

func callFail(_ *exchange, arguments json.RawMessage) *answer {
	var a struct{ Text *string }
	if err := json.Unmarshal(arguments, &a); err != nil || a.Text == nil {
		return failf(codeInvalidParams, "fail needs a text")
	}
	return &answer{result: text(`{"isError":true,"content":[{"type":"text","text":` + quote(*a.Text) + `}]}`)}
}

// callEffect records its effect in the ledger, and then answers.
func callEffect(x *exchange, arguments json.RawMessage) *answer {
	var a struct{ Key *string }
	if err := json.Unmarshal(arguments, &a); err != nil || a.Key == nil {
		return failf(codeInvalidParams, "%s needs a key", x.request.Params.Name)
	}
	if !x.server.record(x.entry(KindEffect)) {
		return failf(codeInternal, "the ledger cannot be written")
	}
	return textResult("done: " + *a.Key)
}

func callWait(x *exchange, _ json.RawMessage) *answer {
	x.report(1, 0, "waiting")
	select {
	case <-x.gone:
	case <-x.link.done():
	case <-x.server.ctx.Done():
	}
	return nil
}

// maxSteps and maxBytes bound the arguments of a client.
const (
	maxSteps = 1_000_000
	maxBytes = 1 << 30
)

func callProgress(x *exchange, arguments json.RawMessage) *answer {
	a := struct{ Steps int }{3}
	if err := json.Unmarshal(arguments, &a); err != nil || a.Steps < 1 || a.Steps > maxSteps {
		return failf(codeInvalidParams, "progress needs steps between 1 and %d", maxSteps)
	}
	for step := 1; step <= a.Steps; step++ {
		x.report(step, a.Steps, fmt.Sprintf("step %d", step))
	}
	return textResult("done")
}

func callBig(_ *exchange, arguments json.RawMessage) *answer {
	a := struct{ Bytes int64 }{-1}
	if err := json.Unmarshal(arguments, &a); err != nil || a.Bytes < 0 || a.Bytes > maxBytes {
		return failf(codeInvalidParams, "big needs bytes between 0 and %d", maxBytes)
	}
	return &answer{result: bigResult(a.Bytes)}
}

// bigResult returns a result with a text of size bytes, which are never in memory
// together.
func bigResult(size int64) writer {
	return func(w io.Writer) error {
		if _, err := io.WriteString(w, `{"content":[{"type":"text","text":"`); err != nil {
			return err
		}
		if err := fill(w, size); err != nil {
			return err
		}
		_, err := io.WriteString(w, `"}]}`)
		return err
	}
}

// fill writes size letters.
func fill(w io.Writer, size int64) error {
	chunk := strings.Repeat("a", 32<<10)
	for size > 0 {
		n := min(size, int64(len(chunk)))
		if _, err := io.WriteString(w, chunk[:n]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}

// report sends a progress notification, if the client asked for it. A total of 0 is
// omitted.
func (o *occasion) report(done, total int, message string) {
	if o.request == nil || len(o.request.Params.Meta.Token) == 0 {
		return
	}
	_ = o.link.message(progressNotification(o.request.Params.Meta.Token, done, total, message))
}

func progressNotification(token json.RawMessage, done, total int, message string) writer {
	of := ""
	if total > 0 {
		of = fmt.Sprintf(`,"total":%d`, total)
	}
	return notification("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d%s,"message":%s}`, token, done, of, quote(message)))
}

// listing is a page of the list of tools.
type listing struct {
	tools []string
	next  string // the cursor of the next page
}

// endlessCursor is the prefix of the cursors of endless pages; loopCursor is the cursor
// that repeats.
const (
	endlessCursor = "endless-"
	loopCursor    = "loop"
)

// turn makes the listing the page of a cursor; it returns false if the page does not
// exist.
func (l *listing) turn(cursor string) bool {
	if cursor == loopCursor {
		l.next = loopCursor
		return true
	}
	var page int
	if _, err := fmt.Sscanf(cursor, endlessCursor+"%d", &page); err != nil {
		return false
	}
	l.tools = []string{extraTool(fmt.Sprintf("page_%d", page), `{"type":"object"}`)}
	l.next = fmt.Sprintf("%s%d", endlessCursor, page+1)
	return true
}

func extraTool(name, schema string) string {
	return `{"name":` + quote(name) + `,"description":"One more.","inputSchema":` + schema + `,"annotations":{"readOnlyHint":true}}`
}

func (l *listing) write(w io.Writer) error {
	if _, err := io.WriteString(w, `{"tools":[`); err != nil {
		return err
	}
	for i, tool := range l.tools {
		if i > 0 {
			tool = "," + tool
		}
		if _, err := io.WriteString(w, tool); err != nil {
			return err
		}
	}
	end := "]}"
	if l.next != "" {
		end = `],"nextCursor":` + quote(l.next) + `}`
	}
	_, err := io.WriteString(w, end)
	return err
}
