import { errorOf } from '../../world/cloud.ts'
import { fileOf, html, mp4, png } from '../../cloud/support/media-samples.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

const reportData = {
  hubId: 1,
  name: 'Lift of bin 2',
  submittedBy: 'tech-17',
  serviceType: 'Corrective',
  serviceStartTime: '2026-03-01T09:00:00Z',
  serviceEndTime: '2026-03-01T10:00:00Z',
  timestamp: '2026-03-01T10:30:00Z',
  hubTested: 'yes',
  description: 'The motor was loose.',
  componentsServiced: ['lift'],
}
const reportForm = (changes: Record<string, unknown> = {}): Call['form'] => ({
  formData: JSON.stringify({ ...reportData, ...changes }),
  media: [fileOf(png, 'before.png'), fileOf(mp4, 'after.mp4')],
})
const filing = (form: Call['form'] = reportForm()): Call => ({ as: 'owner', ...(form && { form }) })

/** Files a report at hub 1 and returns its id. */
async function filed(world: World): Promise<number> {
  const answer = await world.ask(routes['owner.maintenance.create'], filing())
  if (answer.status !== 200) throw new Error(errorOf(answer).error.message)
  return (answer.json as { report: { id: number } }).report.id
}

const bannerForm = { name: 'Spring', order_by: '2', file: fileOf(png, 'spring.png') }
const addition = (form: Call['form'] = bannerForm): Call => ({
  as: 'owner',
  query: { hub_id: 1 },
  ...(form && { form }),
})

async function banner(world: World): Promise<{ id: number; image_url: string }> {
  const answer = await world.ask(routes['owner.banners.create'], addition())
  if (answer.status !== 200) throw new Error(errorOf(answer).error.message)
  return answer.json as { id: number; image_url: string }
}

/** A call of the signed address of a banner's image. */
async function image(
  world: World,
): Promise<Call & { params: { path: string }; query: Record<string, string> }> {
  const { pathname, searchParams } = new URL((await banner(world)).image_url)
  return {
    as: 'nobody',
    params: { path: pathname.slice('/files/'.length) },
    query: Object.fromEntries(searchParams),
  }
}

const always = (call: Call) => () => Promise.resolve(call)

/** O §4.5, banners of O §4.7, and signed files. */
export const mediaCases = {
  'owner.maintenance.create': {
    success: always(filing()),
    errors: {
      invalid_json: always(filing({ formData: '{' })),
      hub_id_required: always(filing(reportForm({ hubId: undefined }))),
      unauthorized: always(filing(reportForm({ hubId: 2 }))),
      validation_error: always(filing(reportForm({ serviceStartTime: 'yesterday' }))),
      unsupported_media_type: always(filing({ ...reportForm(), media: fileOf(html, 'page.png') })),
      payload_too_large: always(filing({ ...reportForm(), formData: 'x'.repeat(1024 * 1024 + 1) })),
    },
  },
  'owner.maintenance.list': {
    async success(world) {
      await filed(world)
      return { as: 'owner', query: { hub_id: '1', page: 1, per_page: 20 } }
    },
    errors: { unauthorized: always({ as: 'owner', query: { hub_id: '2' } }) },
  },
  'owner.maintenance.get': {
    async success(world) {
      return { as: 'owner', params: { log_id: await filed(world) } }
    },
    errors: {
      async not_found(world) {
        return { as: 'other-owner', params: { log_id: await filed(world) } }
      },
      async unauthorized(world) {
        const key = await world.key({ hubs: [7] })
        return { as: { headers: { 'X-API-Key': key } }, params: { log_id: await filed(world) } }
      },
    },
  },
  'owner.banners.list': {
    async success(world) {
      await banner(world)
      return { as: 'owner', query: { hub_id: 1 } }
    },
  },
  'owner.banners.create': {
    success: always(addition()),
    errors: {
      validation_error: always(addition({ ...bannerForm, order_by: 'first' })),
      unsupported_media_type: always(addition({ ...bannerForm, file: fileOf(mp4, 'film.mp4') })),
      payload_too_large: always(addition({ ...bannerForm, name: 'x'.repeat(1024 * 1024 + 1) })),
    },
  },
  'owner.banners.delete': {
    async success(world) {
      return { as: 'owner', params: { banner_id: (await banner(world)).id }, query: { hub_id: 1 } }
    },
    errors: {
      banner_not_found: always({ as: 'owner', params: { banner_id: 99 }, query: { hub_id: 1 } }),
    },
  },
  'root.files': {
    success: image,
    errors: {
      async forbidden(world) {
        const call = await image(world)
        return { ...call, query: { ...call.query, signature: 'forged' } }
      },
      async not_found(world) {
        const { id, image_url } = await banner(world)
        await world.owner('DELETE', `owner/banners/${id}?hub_id=1`)
        const { pathname, searchParams } = new URL(image_url)
        return {
          as: 'nobody',
          params: { path: pathname.slice('/files/'.length) },
          query: Object.fromEntries(searchParams),
        }
      },
      async range_not_satisfiable(world) {
        return { ...(await image(world)), headers: { Range: 'bytes=999999-' } }
      },
      async validation_error(world) {
        const call = await image(world)
        return { ...call, params: { path: `${call.params.path}\0` } }
      },
    },
  },
} satisfies Record<string, RouteCases>
