// SPDX-License-Identifier: Apache-2.0

package ensembletest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// A connection is lost during a call.
func ExampleGate() {
	ctx := context.Background()
	pay := ensembletest.NewGate("pay", false)
	source := ensembletest.NewSource(pay)
	bank := ensemble.New("bank", source, nil)
	defer bank.Close(ctx)
	tools, err := bank.Tools(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		<-pay.Begun
		source.Lose(errors.New("the server died"))
	}()
	_, err = tools[0].Invoke(ctx, &invoker.Call{})
	fmt.Println(invoker.AsFailure(err).Code, pay.Calls())
	// Output:
	// OUTCOME_UNKNOWN 1
}

// A server is down twice before it can be reached.
func ExampleSource_Fail() {
	ctx := context.Background()
	source := ensembletest.NewSource(ensembletest.Echo())
	source.Fail(ensembletest.Open, 2, errors.New("connection refused"))
	echo := ensemble.New("echo", source, nil)
	defer echo.Close(ctx)
	for range 3 {
		err := echo.Connect(ctx)
		fmt.Println(echo.Snapshot().State, err)
	}
	// Output:
	// lost ensemble "echo": cannot connect: connection refused
	// lost ensemble "echo": cannot connect: connection refused
	// ready <nil>
}
