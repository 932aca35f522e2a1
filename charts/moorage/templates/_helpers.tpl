{{- define "moorage.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* The name of everything: the release's, with the chart's unless that is in it. Room is left for "-extender" and the like. */}}
{{- define "moorage.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "moorage.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "moorage.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Roles of the cluster are shared by all namespaces, so the namespace is part of their name. */}}
{{- define "moorage.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "moorage.fullname" .) | trunc 100 | trimSuffix "-" }}
{{- end }}

{{/* Called with (list $ COMPONENT), as the next ones. */}}
{{- define "moorage.componentName" -}}
{{- $root := index . 0 }}{{ $component := index . 1 }}
{{- include "moorage.fullname" $root }}{{ if ne $component "scheduler" }}-{{ $component }}{{ end }}
{{- end }}

{{- define "moorage.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "moorage.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "moorage.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "moorage.selectorLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/part-of: moorage
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "moorage.serviceAccountName" -}}
{{- $root := index . 0 }}{{ $component := index . 1 }}
{{- if $root.Values.serviceAccount.name -}}
{{ $root.Values.serviceAccount.name }}{{ if ne $component "scheduler" }}-{{ $component }}{{ end }}
{{- else -}}
{{ include "moorage.componentName" . }}
{{- end }}
{{- end }}

{{- define "moorage.image" -}}
{{- $image := .Values.image }}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "moorage.leaseName" -}}
{{- .Values.scheduler.leaderElection.leaseName | default (include "moorage.fullname" .) }}
{{- end }}

{{/*
The rules of one component and one scope, each with the reason for it: (dict "root" $ "component" … "scope" …).
files/permissions.yaml is written from the list that Moorage itself checks at its start.
*/}}
{{- define "moorage.rules" -}}
{{- $values := .root.Values }}
{{- $all := .root.Files.Get "files/permissions.yaml" | fromYaml }}
{{- $cases := list "" }}
{{- if $values.extender.full }}{{ $cases = append $cases "full" }}{{ end }}
{{- if $values.extender.bind.enabled }}{{ $cases = append $cases "bind" }}{{ end }}
{{- if $values.extender.writeStatus }}{{ $cases = append $cases "status" }}{{ end }}
{{- $without := $values.rbac.without }}
{{- if not $values.rbac.explain }}{{ $without = append $without "explain endpoint" }}{{ end }}
{{- $lease := include "moorage.leaseName" .root }}
{{- range index $all .component }}
{{- if and (eq .scope $.scope) (not (has .feature $without)) (has .when $cases) }}
# {{ .why }}{{ with .feature }} ({{ . }}){{ end }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource | quote }}]
{{- if eq .scope "lease namespace" }}{{/* "create" cannot be limited to a name */}}
  resourceNames: [{{ $lease | quote }}]
  verbs: [{{ without .verbs "create" | join ", " }}]
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource | quote }}]
  verbs: [create]
{{- else }}
  verbs: [{{ .verbs | join ", " }}]
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* HOST:PORT, with an IPv6 address in brackets. */}}
{{- define "moorage.address" -}}
{{- if contains ":" .host }}[{{ .host }}]{{ else }}{{ .host }}{{ end }}:{{ .port }}
{{- end }}
