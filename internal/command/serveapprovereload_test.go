// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// TestServeApproveAcrossReloads: an approval lasts over a reload that leaves its server alone, and
// allows one call; it is void when the settings of its server have changed.
func TestServeApproveAcrossReloads(t *testing.T) {
	t.Parallel()
	const ada = "ada-0123456789abcdef"
	world, count := effects(t)
	path := file(t, world, asked)
	s := serve(t, true, "--config", path)
	reload := func(tables ...string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Join(tables, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := consortBesideDone(t, "reload", "--config", path); !strings.Contains(said, "has the new configuration") {
			t.Errorf("the reload: %s", said)
		}
	}
	session := s.connect(ada)
	approve := func(arguments string) (id string) {
		t.Helper()
		called(t, session, "world__effect", arguments)
		all := waiting(t, path)
		if len(all) == 0 || len(all[0].Waits) != 1 {
			t.Fatalf("what waits: %+v", all)
		}
		return all[0].Conversation // the newest
	}
	answer := func(id string) {
		t.Helper()
		if status, said := beside(t, "approve", id, waiting(t, path)[0].Waits[0].ID, "--as", "dana", "--config", path); status != exit.Done {
			t.Fatalf("status %d, %s", status, said)
		}
	}
	id := approve(effectA)
	reload(world, asked, atlas(0)) // while it waits
	answer(id)
	reload(world, asked) // after the answer
	if got := called(t, session, "world__effect", effectA); got != "done: a" || count() != 1 {
		t.Errorf("the approved call: %s, %d effects", got, count())
	}
	if got := called(t, session, "world__effect", effectA); !strings.HasPrefix(got, "CONFLICT: ") || count() != 1 {
		t.Errorf("the next call: %s, %d effects", got, count())
	}
	const effectB = `{"key":"b"}`
	id = approve(effectB)
	answer(id)
	reload(strings.Replace(world, "[mcp.world]\n", "[mcp.world]\nheaders = {X-Team = \"b\"}\n", 1), asked)
	if got := called(t, session, "world__effect", effectB); !strings.HasPrefix(got, "CONFLICT: ") || strings.Contains(got, id) || count() != 1 {
		t.Errorf("with other settings of the server: %s, %d effects", got, count())
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}
