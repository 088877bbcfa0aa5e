// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

const embedderVar = "CONSORT_SOAK_EMBEDDER"

func embed() int { return 0 }
