package main

// One running scheduler on the objects of one case.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
)

// trackedInformer remembers the handler registrations, to wait until each has
// seen the whole initial list.
type trackedInformer struct {
	cache.SharedIndexInformer
	note func(cache.ResourceEventHandlerRegistration)
}

func (t *trackedInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return t.noted(t.SharedIndexInformer.AddEventHandler(h))
}

func (t *trackedInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return t.noted(t.SharedIndexInformer.AddEventHandlerWithResyncPeriod(h, period))
}

func (t *trackedInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return t.noted(t.SharedIndexInformer.AddEventHandlerWithOptions(h, options))
}

func (t *trackedInformer) noted(reg cache.ResourceEventHandlerRegistration, err error) (cache.ResourceEventHandlerRegistration, error) {
	if err == nil {
		t.note(reg)
	}
	return reg, err
}

// world is one running scheduler on the objects of one case.
type world struct {
	store    *store
	sched    *scheduler.Scheduler
	snapshot *schedcache.Snapshot
	podStore cache.Indexer
	pending  map[string]*v1.Pod // current version of the pods to schedule
	probes   map[string]*preemptionProbe
	placed   int
	stop     context.CancelFunc
}

func newWorld(parent context.Context, s *store, cfg *schedconfig.KubeSchedulerConfiguration) (_ *world, err error) {
	ctx, cancel := context.WithCancel(parent)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	// The fake clientset only has to answer what plugins ask the API for while
	// deciding: patches of pods, updates of claims, kinds without a row below.
	var known []runtime.Object
	for i, kind := range resourceKinds {
		switch kind.kind {
		case "Pod", "ResourceClaim":
			known = append(known, s.byKind[i]...)
		}
	}
	client := fake.NewSimpleClientset(append(known, s.others...)...)

	var registrations []cache.ResourceEventHandlerRegistration
	var mu sync.Mutex
	note := func(reg cache.ResourceEventHandlerRegistration) {
		mu.Lock()
		defer mu.Unlock()
		registrations = append(registrations, reg)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	for i, kind := range resourceKinds {
		objs := s.byKind[i]
		listWatch := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &metainternal.List{ListMeta: metav1.ListMeta{ResourceVersion: "1000000000"}, Items: objs}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return watch.NewFake(), nil // nothing changes behind the scheduler's back
			},
		}, client)
		indexers := cache.Indexers{}
		if kind.namespaced && kind.kind != "Pod" {
			indexers[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
		}
		factory.InformerFor(kind.example, func(clientset.Interface, time.Duration) cache.SharedIndexInformer {
			return &trackedInformer{cache.NewSharedIndexInformerWithOptions(listWatch, kind.example, cache.SharedIndexInformerOptions{Indexers: indexers}), note}
		})
	}

	snapshot := schedcache.NewEmptySnapshot()
	sched, err := scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithComponentConfigVersion(cfg.TypeMeta.APIVersion),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		scheduler.WithExtenders(cfg.Extenders...),
		scheduler.WithParallelism(cfg.Parallelism),
		scheduler.WithNodeInfoSnapshot(snapshot),
	)
	if err != nil {
		return nil, err
	}
	w := &world{
		store: s, sched: sched, snapshot: snapshot, stop: cancel,
		podStore: factory.Core().V1().Pods().Informer().GetIndexer(),
		pending:  map[string]*v1.Pod{},
		probes:   map[string]*preemptionProbe{},
	}
	for _, pod := range s.pending {
		w.pending[podName(pod)] = pod
	}
	for name, fw := range sched.Profiles {
		for _, pl := range fw.PreEnqueuePlugins() {
			if dp, ok := pl.(*defaultpreemption.DefaultPreemption); ok {
				w.probes[name] = probePreemption(dp)
			}
		}
	}

	factory.StartWithContext(ctx)
	waitCtx, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	if res := factory.WaitForCacheSyncWithContext(waitCtx); res.Err != nil {
		return nil, fmt.Errorf("informers did not sync: %w", res.Err)
	}
	mu.Lock()
	checkers := mapSlice(registrations, func(reg cache.ResourceEventHandlerRegistration) cache.DoneChecker { return reg.HasSyncedChecker() })
	mu.Unlock()
	if !cache.WaitFor(waitCtx, "", checkers...) {
		return nil, errors.New("event handlers did not sync")
	}
	for {
		// Handlers behind the assume cache have no channel: poll, but not every 100 ms.
		pollCtx, done := context.WithTimeout(waitCtx, time.Millisecond)
		err := sched.WaitForHandlersSync(pollCtx)
		done()
		if err == nil {
			return w, nil
		}
		if waitCtx.Err() != nil {
			return nil, fmt.Errorf("event handlers did not sync: %w", err)
		}
	}
}

func (w *world) close() {
	w.stop()
	w.sched.SchedulingQueue.Close()
	_ = w.sched.Profiles.Close()
}
