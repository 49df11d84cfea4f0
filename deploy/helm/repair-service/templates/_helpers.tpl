{{/* The name of everything in a release: the release's own, with the chart's where it says less. */}}
{{- define "repair-service.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (.Release.Name | trunc 25 | trimSuffix "-") .Chart.Name -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods of one component. Takes a dict with `root` and `component`. */}}
{{- define "repair-service.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "repair-service.labels" -}}
{{ include "repair-service.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "repair-service.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* A variable whose value is in a secret. Takes a list: the variable, the secret. */}}
{{- define "repair-service.from-secret" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ (index . 1).name }}
      key: {{ (index . 1).key }}
{{- end -}}

{{/* A pod up to its containers. Takes a dict with `root` and `component`. */}}
{{- define "repair-service.pod" -}}
{{- with .root.Values -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
# SIGTERM stops a run behind the thread at hand, and its report is still written.
terminationGracePeriodSeconds: 60
{{- with .serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- toYaml .podSecurityContext | nindent 2 }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What is the same in each container. Takes the root. */}}
{{- define "repair-service.container" -}}
image: {{ include "repair-service.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
resources: {{- toYaml .Values.resources | nindent 2 }}
{{- end -}}

{{/* A policy for one component's pods, without its metadata. Takes a dict as above. */}}
{{- define "repair-service.network" -}}
podSelector:
  matchLabels: {{- include "repair-service.selector" . | nindent 4 }}
policyTypes: [Ingress, Egress]
egress:
  - ports:
      - port: 53
        protocol: UDP
      - port: 53
        protocol: TCP
  - ports:
      - port: {{ .root.Values.networkPolicy.databasePort }}
        protocol: TCP
    {{- with .root.Values.networkPolicy.databasePeers }}
    to: {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end -}}
