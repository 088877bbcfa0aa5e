// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// badLimiter is a model that panics when it is asked for its limits.
type badLimiter struct{ converse.Model }

func (badLimiter) MaxTools() int                        { return 0 }
func (badLimiter) Shortened(*invoker.Definition) string { panic("no idea") }

// A model that panics when it is asked for its limits is reported instead of an answer.
func TestShortenedThatPanics(t *testing.T) {
	e := ensemble.New("e", ensembletest.NewSource(ensembletest.Returns("f", "f")), nil)
	defer e.Close(t.Context())
	tools, err := e.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := Shortened(tools, badLimiter{})
	if len(found["e"]) != 1 || found["e"][0].Reason != "Model.Shortened panicked: no idea" {
		t.Errorf("found %+v", found)
	}
}
