package main

// The objects of a case, completed as an API server would.

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	schedulinghelpers "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"

	// API groups whose defaulting and conversion the input objects need.
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// resourceKinds are the kinds the scheduler watches, with the version it watches.
var resourceKinds = []struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	example    runtime.Object
}{
	{v1.SchemeGroupVersion.WithResource("pods"), "Pod", true, &v1.Pod{}},
	{v1.SchemeGroupVersion.WithResource("nodes"), "Node", false, &v1.Node{}},
	{v1.SchemeGroupVersion.WithResource("namespaces"), "Namespace", false, &v1.Namespace{}},
	{v1.SchemeGroupVersion.WithResource("persistentvolumes"), "PersistentVolume", false, &v1.PersistentVolume{}},
	{v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "PersistentVolumeClaim", true, &v1.PersistentVolumeClaim{}},
	{v1.SchemeGroupVersion.WithResource("services"), "Service", true, &v1.Service{}},
	{v1.SchemeGroupVersion.WithResource("replicationcontrollers"), "ReplicationController", true, &v1.ReplicationController{}},
	{appsv1.SchemeGroupVersion.WithResource("replicasets"), "ReplicaSet", true, &appsv1.ReplicaSet{}},
	{appsv1.SchemeGroupVersion.WithResource("statefulsets"), "StatefulSet", true, &appsv1.StatefulSet{}},
	{policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), "PodDisruptionBudget", true, &policyv1.PodDisruptionBudget{}},
	{storagev1.SchemeGroupVersion.WithResource("storageclasses"), "StorageClass", false, &storagev1.StorageClass{}},
	{storagev1.SchemeGroupVersion.WithResource("csinodes"), "CSINode", false, &storagev1.CSINode{}},
	{storagev1.SchemeGroupVersion.WithResource("csidrivers"), "CSIDriver", false, &storagev1.CSIDriver{}},
	{storagev1.SchemeGroupVersion.WithResource("csistoragecapacities"), "CSIStorageCapacity", true, &storagev1.CSIStorageCapacity{}},
	{storagev1.SchemeGroupVersion.WithResource("volumeattachments"), "VolumeAttachment", false, &storagev1.VolumeAttachment{}},
	{resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), "ResourceClaim", true, &resourcev1.ResourceClaim{}},
	{resourcev1.SchemeGroupVersion.WithResource("resourceslices"), "ResourceSlice", false, &resourcev1.ResourceSlice{}},
	{resourcev1.SchemeGroupVersion.WithResource("deviceclasses"), "DeviceClass", false, &resourcev1.DeviceClass{}},
	{resourcev1.SchemeGroupVersion.WithResource("devicetaintrules"), "DeviceTaintRule", false, &resourcev1.DeviceTaintRule{}},
}

// clusterScoped are further kinds without a namespace that may be in the input.
var clusterScoped = sets.New("PriorityClass", "RuntimeClass", "VolumeAttributesClass")

var kindIndex = func() map[schema.GroupKind]int {
	m := map[schema.GroupKind]int{}
	for i, k := range resourceKinds {
		m[schema.GroupKind{Group: k.gvr.Group, Kind: k.kind}] = i
	}
	return m
}()

var (
	podGVK  = v1.SchemeGroupVersion.WithKind("Pod")
	decoder = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme, jsonserializer.SerializerOptions{Strict: true})
)

// store holds the typed objects of one case, as an API server would hand them out.
type store struct {
	byKind   map[int][]runtime.Object // index into resourceKinds
	seen     map[string]bool
	others   []runtime.Object
	classes  map[string]*schedulingv1.PriorityClass
	fallback *schedulingv1.PriorityClass // globalDefault
	pending  []*v1.Pod                   // the pods to schedule, in order
	warnings []string
	version  int64
	now      metav1.Time
}

func (s *store) warnf(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// decodeObject turns JSON into a defaulted object of the version the scheduler uses;
// nil without error means that the kind is unknown here and was skipped.
func (s *store) decodeObject(raw []byte, where string, defaultKind *schema.GroupVersionKind) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := decoder.Decode(raw, defaultKind, nil)
	if err != nil {
		switch {
		case runtime.IsStrictDecodingError(err) && obj != nil:
			s.warnf("%s: %v", where, err)
		case runtime.IsNotRegisteredError(err):
			s.warnf("%s: kind %s is not known here, skipped", where, gvk)
			return nil, gvk, nil
		default:
			return nil, gvk, fmt.Errorf("%s: %w", where, err)
		}
	}
	if volume, ok := obj.(*v1.PersistentVolume); ok && volume.Status.Phase == "" {
		volume.Status.Phase = v1.VolumeAvailable // as the PersistentVolume controller would say; see finishVolumes
	}
	legacyscheme.Scheme.Default(obj)
	if i, ok := kindIndex[gvk.GroupKind()]; ok && resourceKinds[i].gvr.Version != gvk.Version {
		internal, err := legacyscheme.Scheme.ConvertToVersion(obj, schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal})
		if err != nil {
			return nil, gvk, fmt.Errorf("%s: %w", where, err)
		}
		if obj, err = legacyscheme.Scheme.ConvertToVersion(internal, resourceKinds[i].gvr.GroupVersion()); err != nil {
			return nil, gvk, fmt.Errorf("%s: %w", where, err)
		}
	}
	return obj, gvk, nil
}

func buildStore(in *caseInput) (*store, error) {
	s := &store{byKind: map[int][]runtime.Object{}, seen: map[string]bool{}, classes: map[string]*schedulingv1.PriorityClass{}, now: metav1.NewTime(time.Now().Truncate(time.Second))}
	for i, raw := range in.pods {
		where := fmt.Sprintf("pods[%d]", i)
		obj, _, err := s.decodeObject(raw, where, &podGVK)
		if err != nil {
			return s, err
		}
		pod, ok := obj.(*v1.Pod)
		if !ok {
			return s, fmt.Errorf("%s: not a Pod", where)
		}
		if pod.Spec.NodeName != "" {
			return s, fmt.Errorf("%s: already has spec.nodeName; bound pods belong in objects", where)
		}
		if fresh, err := s.complete(pod, "Pod", true, where); err != nil {
			return s, err
		} else if !fresh {
			return s, fmt.Errorf("%s: pod %s is listed twice", where, podName(pod))
		}
		s.pending = append(s.pending, pod)
	}
	for i, raw := range in.objects {
		if err := s.add(raw, fmt.Sprintf("objects[%d]", i)); err != nil {
			return s, err
		}
	}
	for _, pod := range s.pending {
		s.byKind[0] = append(s.byKind[0], pod)
	}
	for i, obj := range s.byKind[0] {
		pod, err := s.admitPod(obj.(*v1.Pod))
		if err != nil {
			return s, err
		}
		s.byKind[0][i] = pod
	}
	copy(s.pending, mapSlice(s.byKind[0][len(s.byKind[0])-len(s.pending):], func(o runtime.Object) *v1.Pod { return o.(*v1.Pod) }))
	s.finishVolumes()
	if err := s.addNamespaces(); err != nil {
		return s, err
	}
	for i := range s.byKind { // in the order in which etcd would list them
		sort.SliceStable(s.byKind[i], func(a, b int) bool {
			return objectKey(s.byKind[i][a]) < objectKey(s.byKind[i][b])
		})
	}
	return s, nil
}

func (s *store) add(raw []byte, where string) error {
	obj, gvk, err := s.decodeObject(raw, where, nil)
	if err != nil || obj == nil {
		return err
	}
	if list, ok := obj.(*v1.List); ok {
		for i, item := range list.Items {
			if err := s.add(item.Raw, fmt.Sprintf("%s.items[%d]", where, i)); err != nil {
				return err
			}
		}
		return nil
	}
	index, watched := kindIndex[gvk.GroupKind()]
	namespaced := !clusterScoped.Has(gvk.Kind)
	if watched {
		namespaced = resourceKinds[index].namespaced
	}
	if fresh, err := s.complete(obj, gvk.Kind, namespaced, where); err != nil {
		return err
	} else if !fresh {
		s.warnf("%s: second %s %s ignored", where, gvk.Kind, objectKey(obj))
		return nil
	}
	if pod, ok := obj.(*v1.Pod); ok {
		if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			return nil // the scheduler's pod informer selects these away
		}
		if pod.Status.StartTime == nil && pod.Spec.NodeName != "" {
			// The scheduler takes "now" each time it looks; one moment for all is not random.
			pod.Status.StartTime = s.now.DeepCopy()
		}
	}
	if class, ok := obj.(*schedulingv1.PriorityClass); ok {
		s.classes[class.Name] = class
		if class.GlobalDefault && (s.fallback == nil || class.Value < s.fallback.Value) {
			s.fallback = class
		}
	}
	if watched {
		s.byKind[index] = append(s.byKind[index], obj)
	} else {
		s.others = append(s.others, obj)
	}
	return nil
}

// complete fills in metadata that an API server would set; false: seen before.
func (s *store) complete(obj runtime.Object, kind string, namespaced bool, where string) (bool, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return false, fmt.Errorf("%s: %w", where, err)
	}
	if m.GetName() == "" {
		return false, fmt.Errorf("%s: %s without metadata.name", where, kind)
	}
	if !namespaced {
		m.SetNamespace("")
	} else if m.GetNamespace() == "" {
		m.SetNamespace(metav1.NamespaceDefault)
	}
	key := kind + ":" + objectKey(obj)
	if s.seen[key] {
		return false, nil
	}
	s.seen[key] = true
	if m.GetUID() == "" {
		m.SetUID(types.UID(strings.ToLower(kind) + ":" + objectKey(obj)))
	}
	s.version++
	if _, err := strconv.ParseUint(m.GetResourceVersion(), 10, 64); err != nil {
		m.SetResourceVersion(strconv.FormatInt(s.version, 10))
	}
	m.SetManagedFields(nil)
	return true, nil
}

// admitPod does to a pod what the Priority admission plugin and the pod strategy's
// PrepareForCreate do when it is created (matchLabelKeys, pod-level resources,
// disabled fields). Status is kept.
func (s *store) admitPod(pod *v1.Pod) (*v1.Pod, error) {
	if pod.Spec.Priority == nil {
		name := pod.Spec.PriorityClassName
		class := s.classes[name]
		if name == "" {
			class = s.fallback
		}
		for _, system := range schedulinghelpers.SystemPriorityClasses() { // every cluster has these
			if class == nil && system.Name == name {
				class = system
			}
		}
		switch {
		case class != nil:
			pod.Spec.PriorityClassName = class.Name
			pod.Spec.Priority = &class.Value
			if class.PreemptionPolicy != nil {
				pod.Spec.PreemptionPolicy = class.PreemptionPolicy
			}
		case name == "":
			pod.Spec.Priority = new(int32)
		default:
			s.warnf("pod %s: no PriorityClass %q; priority left unset", podName(pod), name)
		}
	}
	internal := &core.Pod{}
	if err := legacyscheme.Scheme.Convert(pod, internal, nil); err != nil {
		return nil, fmt.Errorf("pod %s: %w", podName(pod), err)
	}
	podregistry.Strategy.PrepareForCreate(context.Background(), internal)
	out := &v1.Pod{}
	if err := legacyscheme.Scheme.Convert(internal, out, nil); err != nil {
		return nil, fmt.Errorf("pod %s: %w", podName(pod), err)
	}
	out.Status = pod.Status
	out.Generation = pod.Generation
	return out, nil
}

// finishVolumes completes claims that say status.phase=Bound the way the
// PersistentVolume controller leaves them.
func (s *store) finishVolumes() {
	volumes := map[string]*v1.PersistentVolume{}
	for i, kind := range resourceKinds {
		if kind.kind == "PersistentVolume" {
			for _, obj := range s.byKind[i] {
				volumes[objectKey(obj)] = obj.(*v1.PersistentVolume)
			}
		}
	}
	for i, kind := range resourceKinds {
		if kind.kind != "PersistentVolumeClaim" {
			continue
		}
		for _, obj := range s.byKind[i] {
			claim := obj.(*v1.PersistentVolumeClaim)
			if claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName == "" {
				continue
			}
			if !metav1.HasAnnotation(claim.ObjectMeta, "pv.kubernetes.io/bind-completed") {
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
			}
			volume := volumes[claim.Spec.VolumeName]
			if volume == nil {
				continue
			}
			if volume.Spec.ClaimRef == nil {
				volume.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name}
			}
			if ref := volume.Spec.ClaimRef; ref.Namespace == claim.Namespace && ref.Name == claim.Name && ref.UID == "" {
				ref.UID = claim.UID
			}
			if volume.Status.Phase == v1.VolumeAvailable {
				volume.Status.Phase = v1.VolumeBound
			}
		}
	}
}

// addNamespaces makes sure that every namespace in use exists.
func (s *store) addNamespaces() error {
	used := sets.New(metav1.NamespaceDefault)
	for _, objs := range s.byKind {
		for _, obj := range objs {
			if m, err := meta.Accessor(obj); err == nil && m.GetNamespace() != "" {
				used.Insert(m.GetNamespace())
			}
		}
	}
	for _, name := range sets.List(used) {
		if !s.seen["Namespace:"+name] {
			if err := s.add(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name), "namespace"); err != nil {
				return err
			}
		}
	}
	return nil
}

func objectKey(obj runtime.Object) string {
	key, _ := cache.MetaNamespaceKeyFunc(obj)
	return key
}

func podName(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

func mapSlice[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i := range in {
		out[i] = f(in[i])
	}
	return out
}
