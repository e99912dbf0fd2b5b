import { createServer, type AddressInfo, type Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { AboutHub } from '../../../../cloud/events/alarms/about-sales.ts'
import { alarmWork, clearAlarm, raiseAlarm, type Incident } from '../../../../cloud/events/alarms/alarms.ts'
import { MAIL_WORK, publish } from '../../../../cloud/events/publish.ts'
import {
  mailWork,
  MailUnconfirmed,
  smtpSender,
  type Mail,
  type SendMail,
} from '../../../../cloud/operations/alarms/mail.ts'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { WorkRunner, type WorkKind } from '../../../../cloud/platform/work/runner.ts'
import type { Severity } from '../../../../protocol/model/alarms.ts'
import { openCloud, type TestCloud } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'

const row: Incident<AboutHub> = { hubId: 1, kind: 'row_blocked', subject: 'row 1/1/1' }
const door: Incident<AboutHub> = { hubId: 1, kind: 'door_forced', subject: 'door main' }

onEachDatabase('alarms by mail', (open) => {
  let app: TestCloud
  let context: CloudContext
  let sent: Mail[]

  beforeEach(async () => {
    app = await openCloud({ db: await open() })
    context = app.context
    sent = []
  })

  const contact = async (email: string, severity: Severity, owner_id = 1): Promise<void> => {
    const values = { owner_id, email, name: null, severity, created_at: 1, confirmed_at: 1 }
    await context.db.kysely.insertInto('alarm_contacts').values(values).execute()
  }
  const raise = (incident: Incident<AboutHub>) =>
    context.db.transact((tx) => raiseAlarm(tx, context, incident))
  const clear = (incident: Incident) => context.db.transact((tx) => clearAlarm(tx, context, incident))
  const runner = (send: SendMail = (mail) => Promise.resolve(void sent.push(mail))) =>
    new WorkRunner(context, mailWork(context, send))
  const pass = async (work = runner(), ms = context.settings.mailGatherMs): Promise<void> => {
    await publish(context)
    app.runtime.clock.advance(ms)
    await work.drain().catch(() => undefined)
  }
  const subjects = (): string[] => sent.map(({ to, subject }) => `${to.address} ${subject}`)

  test('an incident that becomes critical is mailed only to contacts that do not know it yet', async () => {
    await contact('warned@larder.example', 'warning')
    await contact('critical@larder.example', 'critical')
    await raise({ hubId: 1, kind: 'hub_silent', subject: null })
    await pass()
    const time = new WorkRunner(context, alarmWork(context))
    app.runtime.clock.advance(context.settings.hubSilentCriticalMs)
    await time.drain()
    await pass()
    expect(sent.map(({ to, subject }) => [to.address, /warning|critical/.exec(subject)?.[0]])).toEqual([
      ['warned@larder.example', 'warning'],
      ['critical@larder.example', 'critical'],
    ])
  })

  test('a contact gets one mail at the start of an incident, and one at its end', async () => {
    await contact('a@larder.example', 'warning')
    await raise(row)
    await raise(row)
    await pass()
    await pass()
    await clear(row)
    await pass()
    await pass()
    expect(subjects()).toEqual([
      'a@larder.example [Larder] warning: Hub 1: Row 1/1/1 is blocked and sells nothing.',
      'a@larder.example [Larder] over: Hub 1: Row 1/1/1 is blocked and sells nothing.',
    ])
    expect(sent[0]!.text).toMatch(/What to do: .*count the row/)
  })

  test('a contact for critical alarms gets only those, and another owner’s contact gets none', async () => {
    await contact('worst@larder.example', 'critical')
    await contact('all@larder.example', 'info')
    await contact('other@larder.example', 'info', 2)
    await raise(row)
    await pass()
    await raise(door)
    await pass()
    expect(subjects().map((text) => text.split(' ')[0])).toEqual([
      'all@larder.example',
      'worst@larder.example',
      'all@larder.example',
    ])
  })

  test('simultaneous alarms are sent in one mail, and later alarms do not delay it', async () => {
    await contact('a@larder.example', 'warning')
    for (let number = 1; number <= 30; number += 1) {
      await raise({ ...row, subject: `row 1/1/${number}` })
      await publish(context)
      app.runtime.clock.advance(context.settings.mailGatherMs / 20)
    }
    await pass(runner(), 0)
    expect(subjects()).toEqual(['a@larder.example [Larder] 30 alarms'])
    expect(sent[0]!.text.match(/is blocked/g)).toHaveLength(30)
  })

  test('a mail that the server refused is repeated unchanged, whatever alarms were raised since', async () => {
    await contact('a@larder.example', 'warning')
    await raise(row)
    let isUp = false
    const tried: string[] = []
    const work = runner((mail) => {
      tried.push(mail.id)
      if (!isUp) return Promise.reject(new Error('421 too busy'))
      sent.push(mail)
      return Promise.resolve()
    })
    await pass(work)
    await raise(door)
    isUp = true
    await pass(work, 60_000)
    await pass(work, 60_000)
    expect(tried[1]).toBe(tried[0])
    expect(subjects()).toHaveLength(2)
    expect(new Set(tried).size).toBe(2)
    expect(await context.db.kysely.selectFrom('alarm_mails').selectAll().execute()).toEqual([])
  })

  test('a mail is repeated with the same id if its process died after sending', async () => {
    await contact('a@larder.example', 'warning')
    await raise(row)
    await publish(context)
    app.runtime.clock.advance(context.settings.mailGatherMs)
    let dies = true
    context.checkpoint = (point) => {
      if (point === 'mail.after-send' && dies) {
        dies = false
        throw new Error('died')
      }
    }
    const work = runner()
    await work.drain().catch(() => undefined)
    app.runtime.clock.advance(60_000)
    await work.drain()
    expect(sent).toHaveLength(2)
    expect(sent[1]).toEqual(sent[0])
  })

  test('an alarm that is raised just after a mail is sent by the next mail', async () => {
    await contact('a@larder.example', 'warning')
    await raise(row)
    const kinds = mailWork(context, (mail) => Promise.resolve(void sent.push(mail)))
    const mail = kinds[MAIL_WORK]!
    let isFirst = true
    const run: WorkKind['run'] = async (work) => {
      const outcome = await mail.run(work)
      // The run has found nothing left, and its row is still in the queue.
      if (isFirst) {
        isFirst = false
        await raise(door)
        await publish(context)
      }
      return outcome
    }
    const work = new WorkRunner(context, { [MAIL_WORK]: { ...mail, run } })
    await pass(work)
    await pass(work)
    expect(subjects()).toEqual([
      expect.stringContaining('Row 1/1/1'),
      expect.stringContaining('critical: Hub 1'),
    ])
    expect(await context.db.kysely.selectFrom('due_work').select('kind').execute()).toEqual([])
  })

  test('an installation without a mail server queues no mail', async () => {
    await contact('a@larder.example', 'warning')
    await raise(row)
    await pass(new WorkRunner(context, mailWork(context, undefined)))
    expect(await context.db.kysely.selectFrom('alarm_mails').selectAll().execute()).toEqual([])
  })
})

async function openMailServer(onData: NonNullable<SMTPServerOptions['onData']>) {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData,
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()))
  onTestFinished(close)
  const { port } = server.server.address() as AddressInfo
  const url = `smtp://127.0.0.1:${port}`
  return { close, send: smtpSender({ url, from: 'Larder <alarms@larder.example>', timeoutMs: 5000 }) }
}
const letter: Mail = { id: '2', to: { name: '', address: 'a@b.example' }, subject: 'x', text: 'x' }

test('a mail is plain text with its sender and its own id', async () => {
  const mails: string[] = []
  const { send, close } = await openMailServer((stream, _session, done) => {
    let text = ''
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
    stream.on('end', () => {
      mails.push(text)
      done()
    })
  })
  await send({
    id: '0190',
    to: { name: 'Ann\r\nBcc: spy@larder.example', address: 'ann@larder.example' },
    subject: '[Larder] critical: x\r\nBcc: spy@larder.example',
    text: 'Door main is open though it is locked.\n',
  })
  await vi.waitFor(() => expect(mails).toHaveLength(1))
  expect(mails[0]).toMatch(/^From: Larder <alarms@larder.example>\r$/m)
  expect(mails[0]).toMatch(/^Message-ID: <0190@larder.example>\r$/m)
  expect(mails[0]).not.toMatch(/^Bcc:/m)
  expect(mails[0]).toContain('Door main is open though it is locked.')
  await close()
  const refused = send(letter)
  await expect(refused).rejects.toThrow()
  await expect(refused).rejects.not.toBeInstanceOf(MailUnconfirmed)
})

test('a mail is unconfirmed only if the connection ends between the whole mail and the answer', async () => {
  const refusing = await openMailServer((stream, _session, done) => {
    stream.resume().on('end', () => done(Object.assign(new Error('too busy'), { responseCode: 451 })))
  })
  const answered = refusing.send(letter)
  await expect(answered).rejects.toThrow('451')
  await expect(answered).rejects.not.toBeInstanceOf(MailUnconfirmed)
  const unread = await openBroken((socket) => void socket.destroy())
  await expect(unread(letter)).rejects.not.toBeInstanceOf(MailUnconfirmed)
  const unanswered = await openBroken((socket) => {
    socket.write('220 x\r\n')
    socket.on('data', (chunk) => {
      if (String(chunk).endsWith('.\r\n')) socket.destroy()
      else if (/^(EHLO|MAIL|RCPT)/.test(String(chunk))) socket.write('250 x\r\n')
      else if (String(chunk).startsWith('DATA')) socket.write('354 x\r\n')
    })
  })
  await expect(unanswered(letter)).rejects.toBeInstanceOf(MailUnconfirmed)
})

async function openBroken(talk: (socket: Socket) => void): Promise<SendMail> {
  const server = createServer(talk)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())))
  const url = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`
  return smtpSender({ url, from: 'alarms@larder.example', timeoutMs: 5000 })
}
