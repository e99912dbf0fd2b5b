import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { MaintenanceReport } from '../../../protocol/contract/owner-maintenance.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { address } from './address.ts'
import { useData } from './data.ts'
import { time } from './format.ts'
import { useHubs, useZone } from './hubs.ts'
import {
  ActForm,
  Card,
  Field,
  Heading,
  HubSelect,
  Input,
  Loaded,
  Nothing,
  ZoneNote,
  type Texts,
} from './parts.tsx'
import { all, ask, can, imageAt, session } from './session.ts'

const PAGE = 20

/** Reports of service work, with photographs. */
export function MaintenancePage(): JSX.Element {
  const hub = Number(address.value.query.get('hub')) || undefined
  const [most, setMost] = useState(PAGE)
  const found = useData(
    () =>
      all(
        'GET /owners/maintenance/reports',
        {
          query: { per_page: PAGE, ...(hub !== undefined && { hub_id: String(hub) }) },
        },
        most,
      ),
    [hub, most],
  )
  const { data: hubs = [] } = useHubs()
  const zone = useZone(hub)
  return (
    <>
      <Heading text="Maintenance" />
      <Card class="mb-3">
        <HubSelect value={hub} all="All hubs" />
      </Card>
      {can('maintenance:write') && <NewReport hub={hub ?? hubs[0]?.id} />}
      {!!found.data?.length && <ZoneNote zone={zone} />}
      <Loaded of={found}>
        {(reports) => (
          <div class="grid gap-3 md:grid-cols-2">
            {reports.length === 0 && (
              <Card>
                <Nothing>No report yet.</Nothing>
              </Card>
            )}
            {reports.map((report) => (
              <Report
                key={report.id}
                report={report}
                zone={zone}
                hub={hubs.find(({ id }) => id === report.hub_id)?.name ?? `Hub ${report.hub_id}`}
              />
            ))}
            {reports.length >= most && (
              <button class="btn" onClick={() => setMost(most + PAGE)}>
                Show more
              </button>
            )}
          </div>
        )}
      </Loaded>
    </>
  )
}

interface ReportProps {
  report: MaintenanceReport
  /** Its name. */
  hub: string
  zone: string | undefined
}

function Report({ report, hub, zone }: ReportProps): JSX.Element {
  const { name, service_type, submitted_by, submitted_at, description, components_serviced } = report
  return (
    <Card name={`report-${report.id}`}>
      <h2 class="font-semibold break-words">{name}</h2>
      <p class="text-sm quiet">
        {hub}, {service_type.toLowerCase()}, by {submitted_by}, {time(submitted_at, zone)}
        {report.hub_tested !== null && `, tested: ${report.hub_tested}`}
      </p>
      {components_serviced.length > 0 && <p class="text-sm">Serviced: {components_serviced.join(', ')}</p>}
      {description !== null && (
        <details>
          <summary class="link">Description</summary>
          <p class="whitespace-pre-wrap break-words">{description}</p>
        </details>
      )}
      <div class="flex flex-wrap gap-2 mt-2">
        {report.media_assets.map(({ url, mime_type, original_name }) => (
          <a key={url} href={imageAt(url)} target="_blank" rel="noreferrer" class="link">
            {mime_type.startsWith('image/') ? (
              <img src={imageAt(url)} alt={original_name} loading="lazy" class="h-28 rounded" />
            ) : (
              original_name
            )}
          </a>
        ))}
      </div>
    </Card>
  )
}

function NewReport({ hub }: { hub: number | undefined }): JSX.Element {
  function file({ name, type, description }: Texts, given: FormData) {
    const now = new Date(epochMs()).toISOString()
    const sent = new FormData()
    const formData = {
      hubId: hub,
      name,
      submittedBy: session.value?.name ?? session.value?.email ?? 'console',
      serviceType: type,
      serviceStartTime: now,
      timestamp: now,
      description: description === '' ? null : description,
    }
    sent.append('formData', JSON.stringify(formData))
    for (const media of given.getAll('media'))
      if (media instanceof File && media.size > 0) sent.append('media', media)
    return ask('POST /owners/maintenance/reports', { form: sent })
  }
  return (
    <details class="collapse collapse-arrow bg-base-100 mb-3">
      <summary class="collapse-title font-semibold">File a report</summary>
      <ActForm class="collapse-content grid gap-2 sm:grid-cols-2" does={() => 'File the report'} run={file}>
        <Input label="Title" name="name" required maxLength={200} />
        <Field label="Kind of service">
          <select name="type" class="select w-full">
            <option>Corrective</option>
            <option>Preventive</option>
          </select>
        </Field>
        <Field label="Description">
          <textarea name="description" class="textarea w-full" />
        </Field>
        <Input
          label="Photographs and videos"
          name="media"
          type="file"
          multiple
          accept="image/*,video/*"
          class="file-input w-full"
        />
        <button class="btn btn-primary justify-self-start" disabled={hub === undefined}>
          File the report for hub {hub}
        </button>
      </ActForm>
    </details>
  )
}
