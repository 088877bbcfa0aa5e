// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/terminal"
)

// Lists for people have dates of the time zone of this machine, as docs/command.md says.
func TestDatesAreLocal(t *testing.T) {
	zone := time.Local
	defer func() { time.Local = zone }()
	time.Local = time.FixedZone("there", 2*60*60)
	at := time.Date(2026, 11, 29, 23, 30, 0, 0, time.UTC)
	var l PinList
	l.Add("pins.json", []pins.Entry{
		{Ensemble: "a", Tool: "same", Fingerprint: "1", Pinned: at},
		{Ensemble: "a", Tool: "changed", Fingerprint: "1", Pinned: at, Pending: &pins.Pending{Seen: at, Fingerprint: "2", Definition: pins.Definition{Description: "x"}}},
		{Ensemble: "a", Tool: "new", Pending: &pins.Pending{Seen: at, Fingerprint: "2", Definition: pins.Definition{Description: "x"}}},
	})
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	paint := terminal.NewScreen(file, file).Results
	all := l.Text(paint, "") + NewApprovalList([]approvals.Stored{{Allowed: at}}).Text(paint)
	if strings.Count(all, "2026-11-30") != 6 || strings.Contains(all, "2026-11-29") {
		t.Errorf("the dates are\n%s", all)
	}
}
