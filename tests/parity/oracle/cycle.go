package main

// One scheduling cycle, walked through step by step.

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func statusOf(st *fwk.Status, plugin string) rejection {
	if st.Plugin() != "" {
		plugin = st.Plugin()
	}
	reasons := st.Reasons()
	if reasons == nil {
		reasons = []string{}
	}
	return rejection{Plugin: plugin, Reasons: reasons, Code: st.Code().String()}
}

type decideOptions struct {
	commit    bool
	preempt   string
	selfcheck bool
}

func (w *world) schedule(ctx context.Context, pod *v1.Pod, opts decideOptions) *podResult {
	res := &podResult{Pod: podName(pod), Feasible: []string{}, Filtered: map[string]rejection{}, Scores: map[string]map[string]int64{}, Best: []string{}}
	fail := func(err error) *podResult {
		res.Error = err.Error()
		res.Message = err.Error()
		return res
	}
	logger := klog.FromContext(ctx)
	fw, ok := w.sched.Profiles[pod.Spec.SchedulerName]
	if !ok {
		res.Error = fmt.Sprintf("no profile for schedulerName %q: kube-scheduler leaves this pod alone", pod.Spec.SchedulerName)
		return res
	}
	if pod.DeletionTimestamp != nil {
		res.Error = "the pod is being deleted: kube-scheduler skips it"
		return res
	}
	for _, pl := range fw.PreEnqueuePlugins() {
		if st := pl.PreEnqueue(ctx, pod); !st.IsSuccess() {
			r := statusOf(st, pl.Name())
			res.PreEnqueue = &r
			return res
		}
	}
	if err := w.sched.Cache.UpdateSnapshot(logger, w.snapshot); err != nil {
		return fail(err)
	}
	nodes, err := w.snapshot.NodeInfos().List()
	if err != nil {
		return fail(err)
	}

	// What the scheduler's own loop says, to compare with below.
	check := selfCheck{}
	if opts.selfcheck {
		if info, err := framework.NewPodInfo(pod.DeepCopy()); err == nil {
			result, err := w.sched.SchedulePod(ctx, fw, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
			check = selfCheck{ran: true, host: result.SuggestedHost, feasible: result.FeasibleNodes, err: err}
			check.first = len(w.sched.Extenders) == 0 && !fw.HasScorePlugins()
		}
	}
	defer func() { w.compare(res, check) }()

	if len(nodes) == 0 {
		res.Message = scheduler.ErrNoNodesAvailable.Error()
		return res
	}

	state := framework.NewCycleState()
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}

	// PreFilter.
	preRes, st, restricting := fw.RunPreFilterPlugins(ctx, state, pod)
	diagnosis.UnschedulablePlugins = restricting
	restrictors := strings.Join(sets.List(restricting), ",")
	var feasible []fwk.NodeInfo
	switch {
	case st.IsSuccess():
		if pod.Status.NominatedNodeName != "" {
			if info, err := w.snapshot.NodeInfos().Get(pod.Status.NominatedNodeName); err == nil {
				one, _, err := w.filter(ctx, fw, state, pod, []fwk.NodeInfo{info}, framework.NewDefaultNodeToStatus())
				res.ViaNomi = err == nil && len(one) == 1
			}
		}
		candidates := nodes
		if !preRes.AllNodes() {
			candidates = slices.DeleteFunc(slices.Clone(nodes), func(n fwk.NodeInfo) bool { return !preRes.NodeNames.Has(n.Node().Name) })
			diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(restricting))))
			for _, n := range nodes {
				if !preRes.NodeNames.Has(n.Node().Name) {
					res.Filtered[n.Node().Name] = statusOf(diagnosis.NodeToStatus.AbsentNodesStatus(), restrictors)
				}
			}
		}
		var rejectedBy map[string]string
		feasible, rejectedBy, err = w.filter(ctx, fw, state, pod, candidates, diagnosis.NodeToStatus)
		diagnosis.NodeToStatus.ForEachExplicitNode(func(node string, st *fwk.Status) {
			res.Filtered[node] = statusOf(st, rejectedBy[node])
			diagnosis.AddPluginStatus(st)
		})
		if err != nil {
			return fail(err)
		}
	case st.IsRejected():
		r := statusOf(st, restrictors)
		res.PreFilter = &r
		diagnosis.NodeToStatus.SetAbsentNodesStatus(st)
		diagnosis.PreFilterMsg = st.Message()
		diagnosis.AddPluginStatus(st)
	default:
		return fail(st.AsError())
	}

	for _, n := range feasible {
		res.Feasible = append(res.Feasible, n.Node().Name)
	}
	sort.Strings(res.Feasible)

	if len(feasible) == 0 {
		w.postFilter(ctx, fw, state, pod, &framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: diagnosis}, res, &check, opts)
		return res
	}

	// Score. The scheduler does not score a lone node; the oracle does, for show.
	totals, err := w.score(ctx, fw, state, pod, feasible, res.Scores)
	if err != nil && len(feasible) > 1 {
		return fail(err)
	}
	top := int64(0)
	for i, name := range res.Feasible {
		if total := totals[name]; i == 0 || total > top {
			top, res.Best = total, []string{}
		}
		if totals[name] == top {
			res.Best = append(res.Best, name)
		}
	}
	chosen := res.Best[0]
	if res.ViaNomi {
		chosen = pod.Status.NominatedNodeName
	}
	res.Chosen = &chosen
	if opts.commit {
		w.commit(ctx, fw, state, pod, chosen, res)
	}
	return res
}

// filter runs the Filter plugins, then the extenders, on every given node and
// notes the rejections; the map names the extenders that rejected nodes.
func (w *world) filter(ctx context.Context, fw framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, statuses *framework.NodeToStatus) ([]fwk.NodeInfo, map[string]string, error) {
	found := make([]*fwk.Status, len(nodes))
	fw.Parallelizer().Until(ctx, len(nodes), func(i int) {
		found[i] = fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, nodes[i])
	}, "oracle")
	var feasible []fwk.NodeInfo
	var firstErr error
	for i, st := range found {
		switch {
		case st.IsSuccess():
			feasible = append(feasible, nodes[i])
		case st.Code() == fwk.Error:
			if firstErr == nil {
				firstErr = fmt.Errorf("node %s: %w", nodes[i].Node().Name, st.AsError())
			}
		default:
			statuses.Set(nodes[i].Node().Name, st)
		}
	}
	if firstErr != nil {
		return feasible, nil, firstErr
	}
	by := map[string]string{}
	for _, extender := range w.sched.Extenders {
		if len(feasible) == 0 {
			break
		}
		if !extender.IsInterested(pod) {
			continue
		}
		left, failed, unresolvable, err := extender.Filter(pod, feasible)
		if err != nil {
			if extender.IsIgnorable() {
				continue
			}
			return nil, by, err
		}
		for node, reason := range unresolvable {
			by[node] = extender.Name()
			statuses.Set(node, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason))
		}
		for node, reason := range failed {
			if _, ok := unresolvable[node]; !ok {
				by[node] = extender.Name()
				statuses.Set(node, fwk.NewStatus(fwk.Unschedulable, reason))
			}
		}
		feasible = left
	}
	return feasible, by, nil
}

// score fills scores (node -> plugin -> normalized score times weight, and "total")
// and returns the totals.
func (w *world) score(ctx context.Context, fw framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, scores map[string]map[string]int64) (map[string]int64, error) {
	totals := map[string]int64{}
	if len(w.sched.Extenders) == 0 && !fw.HasScorePlugins() {
		for _, n := range nodes {
			totals[n.Node().Name] = 1
			scores[n.Node().Name] = map[string]int64{"total": 1}
		}
		return totals, nil
	}
	if st := fw.RunPreScorePlugins(ctx, state, pod, nodes); !st.IsSuccess() {
		return totals, st.AsError()
	}
	list, st := fw.RunScorePlugins(ctx, state, pod, nodes)
	if !st.IsSuccess() {
		return totals, st.AsError()
	}
	for _, n := range list {
		row := map[string]int64{"total": n.TotalScore}
		for _, s := range n.Scores {
			row[s.Name] = s.Score
		}
		scores[n.Name], totals[n.Name] = row, n.TotalScore
	}
	for _, extender := range w.sched.Extenders {
		if !extender.IsInterested(pod) {
			continue
		}
		hosts, weight, err := extender.Prioritize(pod, nodes)
		if err != nil {
			continue // the scheduler, too, goes on without this extender's scores
		}
		for _, host := range *hosts {
			if row := scores[host.Host]; row != nil {
				points := host.Score * weight * (fwk.MaxScore / extenderv1.MaxExtenderPriority)
				row[extender.Name()] += points
				row["total"] += points
				totals[host.Host] += points
			}
		}
	}
	return totals, nil
}

// postFilter runs the PostFilter plugins, as the scheduler does when nothing fits.
func (w *world) postFilter(ctx context.Context, fw framework.Framework, state fwk.CycleState, pod *v1.Pod, fit *framework.FitError, res *podResult, check *selfCheck, opts decideOptions) {
	check.message = fit.Error()
	res.Message = check.message
	if !fw.HasPostFilterPlugins() {
		if opts.commit && opts.preempt != preemptNone {
			w.setNomination(ctx, podName(pod), "")
		}
		return
	}
	probe := w.probes[fw.ProfileName()]
	if probe != nil {
		probe.reset()
	}
	result, st := fw.RunPostFilterPlugins(ctx, state, pod, fit.Diagnosis.NodeToStatus)
	fit.Diagnosis.PostFilterMsg = st.Message()
	res.Message = fit.Error()
	if probe != nil && probe.mismatch != "" {
		w.store.warnf("self-check: pod %s: %s", podName(pod), probe.mismatch)
	}
	if result == nil || result.NominatingInfo == nil {
		return
	}
	node := result.NominatingInfo.NominatedNodeName
	var victims *extenderv1.Victims
	if probe != nil {
		victims = probe.victims[node]
	}
	if node != "" && victims != nil {
		p := &preemptionResult{Node: node, PDBViolations: victims.NumPDBViolations, Candidates: map[string][]string{}}
		for name, v := range probe.victims {
			p.Candidates[name] = mapSlice(v.Pods, podName)
			sort.Strings(p.Candidates[name])
		}
		p.Victims = p.Candidates[node]
		if len(probe.ties) > 1 {
			p.Ties = probe.ties
		}
		res.Preemption = p
	}
	if opts.commit && opts.preempt != preemptNone && result.Mode() == fwk.ModeOverride {
		w.nominate(ctx, fw, pod, node, victims, opts.preempt == preemptEvict)
		if res.Preemption != nil && opts.preempt == preemptEvict {
			opts.preempt = preemptNone
			res.Retry = w.schedule(ctx, w.pending[podName(pod)], opts)
		}
	}
}
