{{/*
The Deployment of a component:
(dict "root" $ "component" NAME "values" VALUES "args" LIST "ports" LIST "probe" DICT "volumes" LIST "mounts" LIST).
*/}}
{{- define "moorage.deployment" -}}
{{- $root := .root }}{{ $values := .values }}{{ $named := list .root .component }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "moorage.componentName" $named }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" $named | nindent 4 }}
spec:
  replicas: {{ $values.replicas }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    # A new replica is ready, so warm, before an old one goes.
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels:
      {{- include "moorage.selectorLabels" $named | nindent 6 }}
  template:
    metadata:
      labels:  # not the chart's version: a new chart alone is no reason to restart
        {{- include "moorage.selectorLabels" $named | nindent 8 }}
        app.kubernetes.io/part-of: moorage
        {{- with $root.Values.commonLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .component }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      # Never by Moorage: nobody would place the first replica.
      schedulerName: default-scheduler
      serviceAccountName: {{ include "moorage.serviceAccountName" $named }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      priorityClassName: {{ $values.priorityClassName | quote }}
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      securityContext:
        runAsNonRoot: true
        {{- with $root.Values.securityContext.runAsUser }}
        runAsUser: {{ . }}
        {{- end }}
        {{- with $root.Values.securityContext.runAsGroup }}
        runAsGroup: {{ . }}
        fsGroup: {{ . }}
        {{- end }}
        seccompProfile: {type: RuntimeDefault}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $values.topologySpread.keys }}
      topologySpreadConstraints:
        {{- range $values.topologySpread.keys }}
        - topologyKey: {{ . }}
          maxSkew: 1
          whenUnsatisfiable: {{ $values.topologySpread.whenUnsatisfiable }}
          labelSelector:
            matchLabels:
              {{- include "moorage.selectorLabels" $named | nindent 14 }}
          matchLabelKeys: [pod-template-hash]
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "moorage.image" $root | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args:
            {{- range .args }}
            - {{ . | quote }}
            {{- end }}
            {{- range $values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          {{- with $values.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- toYaml .ports | nindent 12 }}
          # A large cluster's first list takes a while; until it is through nothing is wrong.
          startupProbe:
            {{- $probe := .probe }}
            {{- include "moorage.probe" (dict "probe" $probe "path" "/healthz") | nindent 12 }}
            periodSeconds: 2
            failureThreshold: 90
          livenessProbe:
            {{- include "moorage.probe" (dict "probe" $probe "path" "/healthz") | nindent 12 }}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          readinessProbe:
            {{- include "moorage.probe" (dict "probe" $probe "path" "/readyz") | nindent 12 }}
            periodSeconds: 5
            timeoutSeconds: 5
            failureThreshold: 2
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- with concat .mounts $values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {sizeLimit: 256Mi}
        {{- with concat .volumes $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{- define "moorage.probe" -}}
httpGet: {path: {{ .path }}, port: {{ .probe.port }}, scheme: {{ .probe.scheme | default "HTTP" }}}
{{- end }}

{{- define "moorage.budget" -}}
{{- $budget := .values.podDisruptionBudget }}
{{- if and $budget.enabled (gt (int .values.replicas) 1) }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "moorage.componentName" (list .root .component) }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" (list .root .component) | nindent 4 }}
spec:
  maxUnavailable: {{ $budget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "moorage.selectorLabels" (list .root .component) | nindent 6 }}
{{- end }}
{{- end }}
