package main

// What a decision changes for the pods after it.

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

// commit assumes and reserves the pod on the node, then confirms it, as binding would.
func (w *world) commit(ctx context.Context, fw framework.Framework, state fwk.CycleState, pod *v1.Pod, node string, res *podResult) {
	logger := klog.FromContext(ctx)
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	w.placed++
	start := metav1.NewTime(w.store.now.Add(time.Duration(w.placed) * time.Second))
	bound.Status.StartTime = &start
	if utilfeature.DefaultFeatureGate.Enabled(features.DRANodeAllocatableResources) {
		bound.Status.NodeAllocatableResourceClaimStatuses = dynamicresources.ExtractPodNodeAllocatableResourceClaimStatus(logger, state, node)
	}
	if err := w.sched.Cache.AssumePod(logger, bound); err != nil {
		res.Error = err.Error()
		return
	}
	if st := fw.RunReservePluginsReserve(ctx, state, bound, node); !st.IsSuccess() {
		r := statusOf(st, "")
		res.Reserve, res.Chosen = &r, nil
		fit := &framework.FitError{Pod: pod, NumAllNodes: 1, Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}}
		fit.Diagnosis.NodeToStatus.Set(node, st)
		if res.Message = fit.Error(); !st.IsRejected() {
			res.Message = st.Message()
		}
		fw.RunReservePluginsUnreserve(ctx, state, bound, node)
		if err := w.sched.Cache.ForgetPod(logger, bound); err != nil {
			res.Error = err.Error()
		}
		return
	}
	w.sched.SchedulingQueue.Delete(logger, pod)
	if err := w.sched.Cache.AddPod(logger, bound); err != nil {
		res.Error = err.Error()
	}
	_ = w.podStore.Update(bound)
	delete(w.pending, podName(pod))
}

// nominate does what follows a preemption: the pod is nominated to the node, lower
// nominations there are withdrawn, and the victims are terminating (or gone).
func (w *world) nominate(ctx context.Context, fw framework.Framework, pod *v1.Pod, node string, victims *extenderv1.Victims, evict bool) {
	logger := klog.FromContext(ctx)
	if node != "" {
		for _, other := range fw.NominatedPodsForNode(node) {
			name := podName(other.GetPod())
			if corev1helpers.PodPriority(other.GetPod()) < corev1helpers.PodPriority(pod) && other.GetPod().UID != pod.UID {
				w.setNomination(ctx, name, "")
			}
		}
	}
	w.setNomination(ctx, podName(pod), node)
	if victims == nil {
		return
	}
	for _, victim := range victims.Pods {
		grace := victim.Spec.TerminationGracePeriodSeconds
		if evict || (grace != nil && *grace == 0) {
			_ = w.sched.Cache.RemovePod(logger, victim)
			_ = w.podStore.Delete(victim)
			continue
		}
		if victim.DeletionTimestamp != nil {
			continue
		}
		dying := victim.DeepCopy()
		dying.DeletionTimestamp = w.store.now.DeepCopy()
		dying.DeletionGracePeriodSeconds = grace
		dying.Status.Conditions = append(dying.Status.Conditions, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
		})
		_ = w.sched.Cache.UpdatePod(logger, victim, dying)
		_ = w.podStore.Update(dying)
	}
}

func (w *world) setNomination(ctx context.Context, name, node string) {
	item, ok, _ := w.podStore.GetByKey(name)
	if !ok {
		return
	}
	old := item.(*v1.Pod)
	if old.Status.NominatedNodeName == node {
		return
	}
	pod := old.DeepCopy()
	pod.Status.NominatedNodeName = node
	pod.ResourceVersion += "0"
	_ = w.podStore.Update(pod)
	w.sched.SchedulingQueue.Update(ctx, old, pod)
	if _, ok := w.pending[name]; ok {
		w.pending[name] = pod
	}
}
