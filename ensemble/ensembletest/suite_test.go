// SPDX-License-Identifier: Apache-2.0

package ensembletest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

func TestFakePassesSuite(t *testing.T) {
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		tools := ensembletest.ServerTools()
		source := ensembletest.NewSource(tools...)
		return ensembletest.Harness{
			Source: source,
			Lose:   func() { source.Lose(errors.New("the server died")) },
			Change: func() {
				kept := slices.DeleteFunc(tools, func(i invoker.Invoker) bool { return i.Definition().Name == "fail" })
				source.SetTools(append(kept, ensembletest.Returns("late", "late"))...)
			},
		}
	})
}

func TestLocalPassesSuite(t *testing.T) {
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		return ensembletest.Harness{Source: ensemble.LocalSource(ensembletest.ServerTools()...)}
	})
}
