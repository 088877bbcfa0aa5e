// SPDX-License-Identifier: Apache-2.0

// Package parallelism runs more tests at a time than there are processors.
package parallelism

import "flag"

// Set parses the flags of a test program whose tests wait for processes or for time more than
// they compute, and lets n of them run at a time, unless -parallel says otherwise. TestMain
// calls it.
func Set(n string) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", n); err != nil {
		panic(err)
	}
}
