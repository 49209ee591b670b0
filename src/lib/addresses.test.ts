import { expect, test } from 'vitest'
import { isWithin, type Network, readAddress, readNetworks, sourceOf } from './addresses.ts'

test('a source is an IPv4 address, or the first 64 bits of an IPv6 address, in any spelling', () => {
  expect(sourceOf('203.0.113.7')).toBe('203.0.113.7')
  expect(sourceOf('::ffff:203.0.113.7')).toBe('203.0.113.7')
  const same = ['2001:db8:1:2::1', '2001:0DB8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2:0:0:0:9']
  expect(new Set(same.map(sourceOf))).toEqual(new Set(['2001:db8:1:2::/64']))
  expect(sourceOf('2001:db8:1:3::1')).not.toBe(sourceOf('2001:db8:1:2::1'))
  expect(sourceOf('fe80::1%eth0')).toBe('fe80:0:0:0::/64')
  expect(sourceOf('unknown')).toBe('unknown')
})

test('an address has one strict form', () => {
  for (const text of [
    '',
    '127.1',
    '0x7f000001',
    '2130706433',
    '127.0.0.01',
    '1.2.3.4.5',
    'localhost',
    '::1::',
    'fe80::1%eth-0',
    'fe80::1%a.b',
  ]) {
    expect(readAddress(text), text).toBeUndefined()
  }
})

test('a network contains its own addresses, of its own version', () => {
  const networks = readNetworks('10.1.0.0/16,2001:db8::/32,192.0.2.1') as Network[]
  const holds = (text: string) => isWithin(networks, readAddress(text) as never)
  for (const text of ['10.1.255.255', '::ffff:10.1.0.1', '2001:db8:ffff::1', '192.0.2.1'])
    expect(holds(text), text).toBe(true)
  for (const text of ['10.2.0.0', '2001:db9::', '192.0.2.2', '::1']) expect(holds(text), text).toBe(false)
})
