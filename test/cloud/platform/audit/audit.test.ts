import { expect, test } from 'vitest'
import { appendAudits } from '../../../../cloud/platform/audit/audit.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { onEachDatabase } from '../../../world/database.ts'

onEachDatabase('the audit log', (open) => {
  test('the audit log stores any number of simultaneous records in order', async () => {
    const { kysely } = await open()
    const objects = Array.from({ length: 10_000 }, (_, index) => `bin-${index}`)
    await appendAudits(
      kysely,
      virtualRuntime(),
      objects.map((object) => ({
        actor: 'hub',
        action: 'controls.open_bin',
        hubId: null,
        object,
        result: 'unknown',
      })),
    )
    const rows = await kysely.selectFrom('audit_log').select('object').orderBy('id').execute()
    expect(rows.map(({ object }) => object)).toEqual(objects)
  })
})
