// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

func TestApply(t *testing.T) {
	kept, read := ensembletest.Returns("kept", "1"), ensembletest.Returns("read_file", "2")
	got := Apply(ensemble.Listing{Invokers: []invoker.Invoker{kept, nil, read}}, map[string]Override{
		"read_file": {Name: "read"}, "gone": {Name: "x"}, "lost": {Description: "y"},
	})
	if d := got.Invokers[2].Definition(); d.Name != "read" || d.Description != read.Definition().Description || got.Invokers[0] != invoker.Invoker(kept) {
		t.Errorf("the tools are %+v", d)
	}
	if read.Definition().Name != "read_file" {
		t.Error("the server's definition has changed")
	}
	if output, err := got.Invokers[2].Invoke(t.Context(), &invoker.Call{}); err != nil || len(output.Content) != 1 {
		t.Errorf("a call returns %v %v", output, err)
	}
	if len(got.Aside) != 2 || got.Aside[0].Tool != "gone" || got.Aside[1].Tool != "lost" {
		t.Errorf("set aside: %v", got.Aside)
	}
}
