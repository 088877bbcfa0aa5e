// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/internal/console/spending"
)

// spendRow is a row of an export: the exchanges with a model on a day, or the calls of a tool that
// these asked for. Each number is in one row only, so that any sum of rows is right. Its JSON form
// is documented in docs/guides/console.md.
type spendRow struct {
	Day       string `json:"day"`
	Identity  string `json:"identity"`
	Model     string `json:"model"`
	Tool      string `json:"tool"`
	Exchanges int64  `json:"exchanges"`
	Input     int64  `json:"input"`
	Cached    int64  `json:"cached"`
	Output    int64  `json:"output"`
	Money     string `json:"money,omitempty"`
	Currency  string `json:"currency,omitempty"`
	Calls     int64  `json:"calls"`
}

// rows returns the rows of an export by day, and without secrets.
func (c recordPages) rows(s *spending.Sums) []spendRow {
	accounts := slices.SortedFunc(maps.Keys(s.Accounts), func(a, b spending.Account) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Tool, b.Tool))
	})
	all := make([]spendRow, 0, len(accounts))
	for _, of := range accounts {
		sum := s.Accounts[of]
		one := spendRow{Day: of.Day, Identity: c.console.clean.shown(of.Owner), Model: c.console.clean.shown(of.Model), Tool: c.console.clean.shown(of.Tool),
			Exchanges: sum.Exchanges, Input: sum.Input, Cached: sum.Cached, Output: sum.Output, Calls: sum.Calls}
		if c.console.isPriced() && of.Tool == "" {
			one.Money, one.Currency = sum.Money.String(), c.console.policy().Currency
		}
		all = append(all, one)
	}
	return all
}

// maxExports is how many exports of one person may be under way at once: until the sums of the spending are
// known, and until the records of the audit, or the canisters of a conversation, have been sent.
const maxExports = 2

// openExport counts an export of a person until the caller calls end, or writes why there are too
// many.
func (c recordPages) openExport(w http.ResponseWriter, r *http.Request, p *person) (end func(), ok bool) {
	end, ok = c.console.exports.Open(p.session.owner)
	if !ok {
		w.Header().Set("Retry-After", "1")
		c.console.refuse(w, r, http.StatusTooManyRequests, fmt.Sprintf("%d exports of yours are under way, which is the limit. Wait for one of them.", maxExports))
	}
	return end, ok
}

// export returns the rows for a request, or writes why there are none: an export is complete.
func (c recordPages) export(w http.ResponseWriter, r *http.Request, p *person, kind string) (rows []spendRow, ok bool) {
	q := spending.QueryOf(r.URL.Query(), c.console.Now())
	if q.Wrong != "" {
		c.console.refuse(w, r, http.StatusBadRequest, q.Wrong)
		return nil, false
	}
	end, ok := c.openExport(w, r, p)
	if !ok {
		return nil, false
	}
	defer end()
	s := c.spent(r.Context(), p, q, exportTime, 0)
	err := s.Err
	if err == nil && !s.Cut.IsZero() {
		err = errors.New("there are too many conversations for one export: choose a later first day or one identity")
	}
	details := []any{"format", kind}
	for name := range q.Values() {
		details = append(details, name, q.Values().Get(name))
	}
	c.console.record(r, p, "export_spend", "", err, details...)
	if err != nil {
		c.console.fail(w, r, err)
		return nil, false
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="spend-%s-%s.%s"`, q.Values().Get("from"), q.Values().Get("to"), kind))
	return c.rows(s), true
}

// spendJSON sends the sums as an array of objects.
func (c recordPages) spendJSON(w http.ResponseWriter, r *http.Request, p *person) {
	if rows, ok := c.export(w, r, p, "json"); ok {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		form := json.NewEncoder(w)
		form.SetIndent("", "  ")
		_ = form.Encode(rows) // the reader may have left
	}
}

// spendCSV sends the same as comma-separated values (RFC 4180), with the names of the members as the
// first line.
func (c recordPages) spendCSV(w http.ResponseWriter, r *http.Request, p *person) {
	rows, ok := c.export(w, r, p, "csv")
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	out := csv.NewWriter(w)
	out.UseCRLF = true
	_ = out.Write([]string{"day", "identity", "model", "tool", "exchanges", "input", "cached", "output", "money", "currency", "calls"})
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for i := range rows {
		one := &rows[i]
		_ = out.Write([]string{one.Day, cell(one.Identity), cell(one.Model), cell(one.Tool), number(one.Exchanges), number(one.Input),
			number(one.Cached), number(one.Output), one.Money, one.Currency, number(one.Calls)})
	}
	out.Flush() // the reader may have left
}

// cell returns a name that spreadsheets do not take for a formula.
func cell(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == ';' || r == '\t' { // separators elsewhere
			return ' '
		}
		return r
	}, name)
	if strings.HasPrefix(strings.TrimLeft(name, " \t\r\n'\""), "=") || strings.ContainsAny(name[:min(1, len(name))], "=+-@\t\r") {
		return "'" + name
	}
	return name
}
