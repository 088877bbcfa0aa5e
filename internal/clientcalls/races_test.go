// SPDX-License-Identifier: Apache-2.0

//go:build !race

package clientcalls_test

const races = 10_000
