package main

// How preemption is watched and made repeatable.

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// preemptionProbe sits between the DefaultPreemption evaluator and the plugin: it
// has all nodes dry-run instead of a random part, keeps each node's victims, and
// settles the ties that the scheduler settles by map order by node name.
type preemptionProbe struct {
	preemption.Interface
	evaluator *preemption.Evaluator
	asking    bool

	mu       sync.Mutex
	victims  map[string]*extenderv1.Victims
	ties     []string
	mismatch string
}

func probePreemption(dp *defaultpreemption.DefaultPreemption) *preemptionProbe {
	p := &preemptionProbe{Interface: dp.Evaluator.Interface, evaluator: dp.Evaluator}
	dp.Evaluator.Interface = p
	dp.Executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string) (bool, error) {
		return false, nil // the oracle deals with the victims itself
	}
	p.reset()
	return p
}

func (p *preemptionProbe) reset() {
	p.victims, p.ties, p.mismatch = map[string]*extenderv1.Victims{}, nil, ""
}

func (p *preemptionProbe) GetOffsetAndNumCandidates(nodes int32) (int32, int32) { return 0, nodes }

func (p *preemptionProbe) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, preemptor *v1.Pod, node fwk.NodeInfo,
	possible []*preemption.DomainVictim, pdbs []*policyv1.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	pods, violations, status := p.Interface.SelectVictimsOnNode(ctx, state, preemptor, node, possible, pdbs)
	if status.IsSuccess() && len(pods) > 0 {
		p.mu.Lock()
		p.victims[node.Node().Name] = &extenderv1.Victims{Pods: pods, NumPDBViolations: int64(violations)}
		p.mu.Unlock()
	}
	return pods, violations, status
}

// OrderedScoreFuncs lets the scheduler choose by its own rules first, finds out
// which candidates those rules cannot tell from the chosen one, and then makes it
// choose the first of these by name.
func (p *preemptionProbe) OrderedScoreFuncs(ctx context.Context, victims map[string]*extenderv1.Victims) []func(string) int64 {
	if p.asking {
		return p.Interface.OrderedScoreFuncs(ctx, victims)
	}
	var candidates []preemption.Candidate
	for name, v := range victims {
		candidates = append(candidates, nodeCandidate{name, v})
	}
	p.asking = true
	winner := p.evaluator.SelectCandidate(ctx, candidates).Name()
	p.asking = false
	best := candidateRank(victims[winner])
	for name, v := range victims {
		switch slices.Compare(candidateRank(v), best) {
		case 0:
			p.ties = append(p.ties, name)
		case 1:
			p.mismatch = fmt.Sprintf("preemption: the scheduler chose node %s, the oracle ranks %s higher", winner, name)
		}
	}
	sort.Strings(p.ties)
	return []func(string) int64{func(name string) int64 {
		if name == p.ties[0] {
			return 1
		}
		return 0
	}}
}

type nodeCandidate struct {
	name    string
	victims *extenderv1.Victims
}

func (c nodeCandidate) Name() string                 { return c.name }
func (c nodeCandidate) Victims() *extenderv1.Victims { return c.victims }
func (c nodeCandidate) NumPodGroupDisruptions() int  { return 0 }

// candidateRank: higher is preferred, compared element by element. Fewer PDB
// violations, lower top priority, lower sum of priorities, fewer victims, later start.
func candidateRank(v *extenderv1.Victims) []int64 {
	var sum int64
	for _, pod := range v.Pods {
		sum += int64(corev1helpers.PodPriority(pod)) + 1<<31
	}
	return []int64{
		-v.NumPDBViolations,
		-int64(corev1helpers.PodPriority(v.Pods[0])),
		-sum,
		-int64(len(v.Pods)),
		schedutil.GetEarliestPodStartTime(v).UnixNano(),
	}
}
