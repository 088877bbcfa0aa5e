// SPDX-License-Identifier: Apache-2.0

// Package ownfunctions marks the sources of ensembles whose tools are Go functions of the
// program itself, so that package ensemble trusts their hints. Other modules cannot import
// it, so no other source gets that trust.
package ownfunctions

// Mark marks a type that embeds it as a Source.
type Mark struct{}

func (Mark) own() {}

// Source is a source of the program's own functions.
type Source interface{ own() }
