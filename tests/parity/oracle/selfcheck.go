package main

// The comparison with the scheduler's own SchedulePod.

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// selfCheck is what Scheduler.SchedulePod itself made of the pod.
type selfCheck struct {
	ran      bool
	host     string
	feasible int
	first    bool // without scores the scheduler takes the first node that fits
	err      error
	message  string // the oracle's message before PostFilter
}

func (w *world) compare(res *podResult, c selfCheck) {
	if !c.ran || res.PreEnqueue != nil || res.Reserve != nil {
		return
	}
	bad := func(format string, args ...any) {
		w.store.warnf("self-check: pod %s: %s", res.Pod, fmt.Sprintf(format, args...))
	}
	var fit *framework.FitError
	switch {
	case c.err == nil && res.Chosen == nil:
		bad("the scheduler chose %s, the oracle none", c.host)
	case c.err == nil && res.ViaNomi:
		if *res.Chosen != c.host {
			bad("the scheduler chose the nominated node %s, the oracle %s", c.host, *res.Chosen)
		}
	case c.err == nil:
		if !slices.Contains(res.Best, c.host) {
			bad("the scheduler chose %s, the oracle's best are %v", c.host, res.Best)
		}
		if c.feasible != len(res.Feasible) && !c.first {
			bad("the scheduler found %d feasible nodes, the oracle %d", c.feasible, len(res.Feasible))
		}
	case errors.As(c.err, &fit):
		if c.message != fit.Error() {
			bad("the scheduler says %q, the oracle %q", fit.Error(), c.message)
		}
	case errors.Is(c.err, scheduler.ErrNoNodesAvailable):
		if res.Message != c.err.Error() {
			bad("the scheduler says %q, the oracle %q", c.err, res.Message)
		}
	case res.Error == "":
		bad("the scheduler failed with %q, the oracle did not", c.err)
	}
}
