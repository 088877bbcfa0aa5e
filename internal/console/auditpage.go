// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/consort-go/consort/invoker/audit"
)

// Bounds of the page of the audit.
const (
	auditShown = 200      // records
	auditBad   = 10       // lines that are not records and are named
	auditRead  = 16 << 20 // bytes at the end of the file that are searched
)

// openRecords opens the file of all records; nil if there is none.
func (c recordPages) openRecords() (*os.File, error) {
	if c.console.Records == nil || c.console.Records() == "" {
		return nil, nil
	}
	file, err := os.Open(c.console.Records())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// trail is the end of the audit file.
type trail struct {
	records []audit.Record // that match, the newest first
	cut     bool           // there are older ones
	bad     []error        // lines that are not records; if the file is long, counted from the part that is read
}

// trailOf returns the end of the audit file with at most that many records that match.
func (c recordPages) trailOf(match func(*audit.Record) bool, most int) (t trail, err error) {
	file, err := c.openRecords()
	if err != nil || file == nil {
		return trail{}, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > auditRead {
		t.cut = true
		if _, err := file.Seek(-auditRead, io.SeekEnd); err != nil {
			return trail{}, err
		}
	}
	isFirst := true
	for record, err := range audit.Read(file) {
		if _, isCut := errors.AsType[*fs.PathError](err); isCut {
			return trail{}, err
		}
		switch {
		case err != nil && !(isFirst && t.cut): // the first line may be incomplete
			t.bad = append(t.bad, err)
		case err == nil && match(&record):
			t.records = append(t.records, record)
		}
		isFirst = false
	}
	slices.Reverse(t.records)
	if len(t.records) > most {
		t.records, t.cut = t.records[:most], true
	}
	return t, nil
}

// matching returns the filter of a request.
func matching(v url.Values) func(*audit.Record) bool {
	who, tool, code := strings.ToLower(v.Get("who")), strings.ToLower(v.Get("tool")), strings.ToUpper(v.Get("code"))
	return func(r *audit.Record) bool {
		names := strings.ToLower(r.ClientName + " " + r.Client + " " + r.By)
		return strings.Contains(names, who) && strings.Contains(strings.ToLower(r.Ensemble+" "+r.Tool), tool) &&
			(code == "" || r.Code == code || code == "FAILED" && r.Code != audit.OK)
	}
}

func (c recordPages) auditPage(w http.ResponseWriter, r *http.Request, p *person) {
	v := r.URL.Query()
	trail, err := c.trailOf(matching(v), auditShown)
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	var rows []part
	for _, one := range trail.records {
		about := part(nil)
		if one.Conversation != "" {
			about = el("a", href(pathOf(one.Conversation)), text(one.Conversation))
		}
		rows = append(rows, row(moment(one.Time), text(one.Asker+" "+one.ClientName), text(strings.TrimSpace(one.Ensemble+" "+one.Tool)), text(one.Code),
			text(one.By), about, details(false, text("Record"), pre(c.console.Redact(jsonOf(one))))))
	}
	export := url.Values{"who": v["who"], "tool": v["tool"], "code": v["code"]}
	c.console.show(w, r, p, "Audit",
		el("h1", text("Audit")),
		el("form", attr("method", "get"), action(Prefix+"/audit"), class("search"), attr("role", "search"),
			c.console.field("who", "Who", v.Get("who")), c.console.field("tool", "Tool or action", v.Get("tool")), c.console.field("code", "Code, or FAILED", v.Get("code")), el("button", text("Filter"))),
		when(c.console.Records == nil || c.console.Records() == "", el("p", text("No audit file is configured. Add the table [audit] with the key file."))),
		when(len(trail.bad) > 0, el("div", el("p", text(fmt.Sprintf("Lines of the file that are not records: %d", len(trail.bad)))),
			pre(c.console.Redact(fmt.Sprint(errors.Join(trail.bad[:min(len(trail.bad), auditBad)]...)))))),
		when(trail.cut, el("p", class("faint"), text("Only the newest records are shown."))),
		when(len(rows) > 0, el("p", el("a", href(Prefix+"/audit.jsonl?"+export.Encode()), text("Export these records as JSON Lines"))),
			table("Records, the newest first", []string{"Time", "Who asked", "Tool or action", "Code", "Decided by", "Conversation", "Record"}, rows...)),
		when(len(rows) == 0, el("p", text("No record matches."))))
}

func jsonOf(record audit.Record) string {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// auditExport sends the records of the file that match as lines of JSON, the oldest first. One that cannot be
// complete is cut off. A line of the file that is not a record is a string of JSON that says so, with any filter.
func (c recordPages) auditExport(w http.ResponseWriter, r *http.Request, p *person) {
	end, ok := c.openExport(w, r, p)
	if !ok {
		return
	}
	defer end()
	var from io.Reader = strings.NewReader("")
	file, err := c.openRecords()
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	if file != nil {
		defer file.Close()
		from = file
	}
	c.console.record(r, p, "export_audit", "", nil)
	w.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="audit.jsonl"`)
	match := matching(r.URL.Query())
	for one, err := range audit.Read(from) {
		if _, isCut := errors.AsType[*fs.PathError](err); isCut {
			panic(http.ErrAbortHandler)
		}
		exported := any(one)
		if err != nil {
			exported = err.Error()
		} else if !match(&one) {
			continue
		}
		line, err := json.Marshal(exported)
		if err != nil {
			continue
		}
		if _, err := w.Write([]byte(c.console.Redact(string(line)) + "\n")); err != nil {
			return
		}
	}
}
