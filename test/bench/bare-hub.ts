import { ReadlineParser } from '@serialport/parser-readline'
import { MqttClient } from 'mqtt'
import { connect } from 'node:net'
import { SerialPort } from 'serialport'

/**
 * The second process of the bare hops: from MQTT to the serial line, and back. Arguments: the broker's port,
 * the line's path.
 */
const [brokerPort, path] = process.argv.slice(2)
const client = new MqttClient(() => connect({ host: '127.0.0.1', port: Number(brokerPort), noDelay: true }), {
  protocolVersion: 4,
  clientId: 'bare-hub',
  reconnectPeriod: 0,
})
const port = new SerialPort({ path: path!, baudRate: 115_200 })
port.pipe(new ReadlineParser({ delimiter: '\n' })).on('data', (line: string) => {
  client.publish('up', line, { qos: 1 })
})
client.handleMessage = (packet, done) => {
  port.write(`${packet.payload.toString()}\n`)
  done()
}
client.on('connect', () => client.subscribe('down', { qos: 1 }, () => process.send!('ready')))
process.once('disconnect', () => process.exit(0))
