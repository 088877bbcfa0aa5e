// SPDX-License-Identifier: Apache-2.0

package ensembletest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

// fakeHarness makes a harness of a fake that offers the tools of the suite.
func fakeHarness() ensembletest.Harness {
	tools := ensembletest.ServerTools()
	source := ensembletest.NewSource(tools...)
	library := ensembletest.ServerLibrary(new(local.Updates))
	source.SetLibrary(library)
	return ensembletest.Harness{
		Source:  source,
		Lose:    func() { source.Lose(errors.New("the server died")) },
		Library: true,
		Update:  func() { source.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"}) },
		ChangeLibrary: func() {
			library.Resources = append(library.Resources, ensembletest.TextResource("test://late", "late"))
			source.SetLibrary(library)
		},
		Change: func() {
			kept := slices.DeleteFunc(tools, func(i invoker.Invoker) bool { return i.Definition().Name == "fail" })
			source.SetTools(append(kept, ensembletest.Returns("late", "late"))...)
		},
	}
}

func TestFakePassesSuite(t *testing.T) {
	ensembletest.TestSource(t, func(*testing.T) ensembletest.Harness { return fakeHarness() })
}

func TestLocalPassesSuite(t *testing.T) {
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		return ensembletest.Harness{Source: ensemble.LocalSource(ensembletest.ServerTools()...)}
	})
}

func TestLibraryPassesSuite(t *testing.T) {
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		updates := new(local.Updates)
		return ensembletest.Harness{
			Source:  ensembletest.ServerLibrary(updates).Source(ensembletest.ServerTools()...),
			Library: true,
			Update:  func() { updates.Tell("test://greeting") },
		}
	})
}
