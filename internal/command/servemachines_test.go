// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// TestApprovalAcrossMachines: one process asks for an approval and is killed, the console of
// a second one, which runs no conversations, answers it, and a third one makes the call: there
// is one effect. The same when the first one lives, and two processes may continue.
// CONSORT_TEST_APPROVALS is the number of approvals with each.
func TestApprovalAcrossMachines(t *testing.T) {
	t.Parallel()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("CONSORT_TEST_APPROVALS"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("SQLite", func(t *testing.T) { approvedElsewhere(t, run{}, historyTable, rounds) })
	t.Run("PostgreSQL", func(t *testing.T) {
		table, r, _ := onServer(t)
		approvedElsewhere(t, r, table, rounds)
	})
}

// payer is a model that calls the tool effect after each message, and then says what it returned.
func payer(r *openaiserver.Request) openaiserver.Reply {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == "tool" {
		return openaiserver.Message{Text: "Paid: " + last.Text}
	}
	return openaiserver.Message{Calls: []openaiserver.Call{calls("world__effect", `{"key":"bill"}`)}}
}

func approvedElsewhere(t *testing.T, r run, store string, rounds int) {
	world, count := effects(t)
	scripted, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Respond(payer)}}, Repeat: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scripted.Close() })
	access := fmt.Sprintf("[serve]\nhttp = \"127.0.0.1:0\"\nclients = [{name = \"ada\", token = %q, trusted = {user = \"ada\"}}, "+
		"{name = \"ben\", token = %q, trusted = {user = \"ben\"}, console = \"operate\"}]\n", adaToken, benToken)
	path := file(t, world, fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\nmax_retries = 0\n", scripted.URL()), store, access, defers)
	start := func(flags ...string) *service {
		t.Helper()
		return serveWith(t, r, true, append(flags, "--config", path)...)
	}
	wants := 0
	pay := func(s *service) (conversation string) {
		t.Helper()
		h, failure := s.says(adaToken, "Pay.", "")
		if h.Reason != "waiting" || count() != wants {
			t.Fatalf("%+v, %s, with %d effects", h, failure, count())
		}
		return h.Conversation
	}
	first, approver := start("--converse"), start()
	ben := (&consolestage.Stage{URL: strings.TrimSuffix(approver.url, "/mcp") + "/console"}).Login(t, benToken)
	approved := func(conversation string) {
		t.Helper()
		ben.Allow(conversation)
		waitFor(t, "the end of the turn in the console", func() bool { return strings.Contains(ben.Get("/conversations/"+conversation).Text, "Paid: ") })
		if wants++; count() != wants {
			t.Errorf("%d effects, want %d", count(), wants)
		}
	}
	var asked []string
	for range rounds {
		asked = append(asked, pay(first))
	}
	first.signal(syscall.SIGKILL)
	_ = first.cmd.Wait() // was killed
	third := start("--converse")
	for _, conversation := range asked {
		approved(conversation)
		if h, failure := third.says(adaToken, "", conversation); !strings.HasPrefix(h.Answer, "Paid: ") {
			t.Errorf("the third process has %+v, %s", h, failure)
		}
	}
	also := start("--converse")
	for range rounds {
		approved(pay(also))
	}
	running := []*service{approver, third, also}
	for _, s := range running {
		s.signal(os.Interrupt)
		_ = s.cmd.Wait() // the status is compared below
	}
	for _, s := range running {
		s.ends(exit.Done)
	}
	if count() != wants {
		t.Errorf("%d effects in the end, want %d", count(), wants)
	}
}
