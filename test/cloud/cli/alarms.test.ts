import { beforeAll, expect, test } from 'vitest'
import { alarmCommands } from '../../../cloud/cli/alarms.ts'
import { runCommandLine, type Outcome } from '../../../cloud/cli/command-line.ts'
import { contactCommands } from '../../../cloud/cli/contacts.ts'
import { raiseAlarm } from '../../../cloud/events/alarms/alarms.ts'
import { alarmKinds } from '../../../protocol/model/alarms.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { testContext } from '../../world/context.ts'
import { cloudFolder } from './cloud-folder.ts'

const { environment, db } = await cloudFolder()
const runtime = systemRuntime()

beforeAll(async () => {
  const context = testContext(db, runtime)
  await db.transact((tx) =>
    raiseAlarm(tx, context, { hubId: 1, kind: 'row_blocked', subject: 'row 1/1/1', detail: 'no_drop' }),
  )
  await db.transact((tx) => raiseAlarm(tx, context, { hubId: 2, kind: 'store_full', subject: null }))
})

const alarms = (...args: string[]) => runCommandLine(alarmCommands, runtime, args, environment)
const contacts = (...args: string[]) => runCommandLine(contactCommands, runtime, args, environment)
const json = ({ exitCode, stdout, stderr }: Outcome): Record<string, unknown>[] => {
  expect([exitCode, stderr]).toEqual([0, ''])
  return [JSON.parse(stdout)].flat() as Record<string, unknown>[]
}
const refusal = ({ exitCode, stderr }: Outcome): string => {
  expect(exitCode).toBe(/no such/.test(stderr) ? 1 : 2)
  return stderr
}

test('the alarms command lists open alarms of an owner or a hub, newest first, with their remedies', async () => {
  expect(json(await alarms('list')).map(({ kind }) => kind)).toEqual(['store_full', 'row_blocked'])
  expect(json(await alarms('list', '--hub', '1'))).toMatchObject([
    { owner_id: 1, hub_id: 1, kind: 'row_blocked', subject: 'row 1/1/1', severity: 'warning' },
  ])
  expect(json(await alarms('list', '--owner', 'One'))[0]!['remedy']).toMatch(/count the row/)
  expect(json(await alarms('list', '--state', 'cleared'))).toEqual([])
  expect(refusal(await alarms('list', '--state', 'some'))).toMatch(/open, cleared or all/)
})

test('the help names exactly the kinds of alarms that an acknowledgement ends', async () => {
  const { stdout } = await alarms('--help')
  for (const [kind, { ends }] of Object.entries(alarmKinds)) {
    const isNamed = new RegExp(`\\b${kind}\\b`).test(stdout)
    expect([kind, isNamed]).toEqual([kind, ends.endsWith('acknowledged')])
  }
})

test('an alarm is acknowledged once, with an audit record', async () => {
  const [{ id } = { id: '' }] = json(await alarms('list', '--hub', '1'))
  expect(json(await alarms('acknowledge', String(id)))).toMatchObject([
    { id, acknowledged_by: 'command line', cleared_at: null },
  ])
  const audit = await db.kysely.selectFrom('audit_log').select(['action', 'object']).execute()
  expect(audit).toContainEqual({ action: 'alarms.acknowledge', object: id })
  expect(refusal(await alarms('acknowledge', 'alm_unknown'))).toMatch(/no such alarm/)
})

test('a contact can be added, changed, listed and removed', async () => {
  const added = json(
    await contacts('add', '--owner', 'One', '--email', 'ann@larder.example', '--name', 'Ann'),
  )
  expect(added).toMatchObject([
    { owner_id: 1, email: 'ann@larder.example', name: 'Ann', severity: 'warning' },
  ])
  const worst = ['--severity', 'critical']
  json(await contacts('add', '--owner', 'One', '--email', 'ann@larder.example', ...worst))
  const [ann, ...others] = json(await contacts('list'))
  expect(others).toEqual([])
  expect(ann).toMatchObject({ name: null, severity: 'critical' })
  expect(json(await contacts('remove', String(ann!['id'])))).toMatchObject([{ removed: true }])
  expect(json(await contacts('list', '--owner', 'One'))).toEqual([])
})

test.each([
  [['add', '--owner', 'One', '--email', 'nobody'], /not an address/],
  [['add', '--owner', 'Nobody', '--email', 'a@b.example'], /no owner/],
  [['add', '--owner', 'One', '--email', 'a@b.example', '--severity', 'bad'], /--severity must be/],
  [['add', '--owner', 'One', '--email', 'a@b.example', '--name', 'A\nB'], /one line/],
  [['remove', '99'], /no such contact/],
  [['remove', 'x'], /whole number/],
])('the contacts command refuses %j in words', async (args, why) => {
  expect(refusal(await contacts(...args))).toMatch(why)
})
