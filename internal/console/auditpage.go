// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"encoding/json"
	"errors"
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

// trailOf returns the records of the end of the audit file that match, the newest first.
func (c recordPages) trailOf(match func(*audit.Record) bool, most int) (list []audit.Record, cut bool, err error) {
	file, err := c.openRecords()
	if err != nil || file == nil {
		return nil, false, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > auditRead {
		cut = true
		if _, err := file.Seek(-auditRead, io.SeekEnd); err != nil {
			return nil, false, err
		}
	}
	for record, err := range audit.Read(file) { // the first line may be incomplete
		if _, isCut := errors.AsType[*fs.PathError](err); isCut {
			return nil, false, err
		}
		if err == nil && match(&record) {
			list = append(list, record)
		}
	}
	slices.Reverse(list)
	if len(list) > most {
		list, cut = list[:most], true
	}
	return list, cut, nil
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
	list, cut, err := c.trailOf(matching(v), auditShown)
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	var rows []part
	for _, one := range list {
		about := part(nil)
		if one.Conversation != "" {
			about = el("a", href(pathOf(one.Conversation)), text(one.Conversation))
		}
		rows = append(rows, row(moment(one.Time), text(one.Asker+" "+one.ClientName), text(strings.TrimSpace(one.Ensemble+" "+one.Tool)), text(one.Code),
			text(one.By), about, details(false, text("Record"), pre(c.console.Redact(jsonOf(one))))))
	}
	export := url.Values{"who": v["who"], "tool": v["tool"], "code": v["code"]}
	c.console.show(w, p, "Audit",
		el("h1", text("Audit")),
		el("form", attr("method", "get"), action(Prefix+"/audit"), class("search"), attr("role", "search"),
			c.console.field("who", "Who", v.Get("who")), c.console.field("tool", "Tool or action", v.Get("tool")), c.console.field("code", "Code, or FAILED", v.Get("code")), el("button", text("Filter"))),
		when(c.console.Records == nil || c.console.Records() == "", el("p", text("No audit file is configured. Add the table [audit] with the key file."))),
		when(cut, el("p", class("faint"), text("Only the newest records are shown."))),
		when(len(rows) > 0, el("p", el("a", href(Prefix+"/audit.jsonl?"+export.Encode()), text("Export these records as JSON Lines"))),
			table("Records, the newest first", []string{"Time", "Who asked", "Tool or action", "Code", "Decided by", "Conversation", "Record"}, rows...)),
		when(len(rows) == 0, el("p", text("No record matches."))))
}

func jsonOf(record audit.Record) string {
	text, err := json.Marshal(record)
	if err != nil {
		return err.Error()
	}
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// auditExport sends the records of the file that match as lines of JSON, the oldest first. One that cannot be
// complete is cut off.
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
		if err != nil || !match(&one) { // a line that is not a record
			continue
		}
		line, err := json.Marshal(one)
		if err != nil {
			continue
		}
		if _, err := w.Write([]byte(c.console.Redact(string(line)) + "\n")); err != nil {
			return
		}
	}
}
