import io, unittest


def fizz(n):
    return "fizz" * (n % 3 == 0) + "buzz" * (n % 5 == 0) or str(n)


class TestFizz(unittest.TestCase):
    def setUp(self):
        self.n = 15

    def test_both(self):
        self.assertEqual(fizz(self.n), "fizzbuzz")

    def test_wrong(self):
        self.assertEqual(fizz(9), "buzz")

    def test_raises(self):
        with self.assertRaisesRegex(TypeError, "not all|unsupported"):
            fizz(None)

    @unittest.skip("later")
    def test_later(self):
        pass

    def test_cases(self):
        for n in (1, 2, 4):
            with self.subTest(n=n):
                self.assertEqual(fizz(n), str(n))


out = io.StringIO()
result = unittest.TextTestRunner(stream=out, verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(TestFizz))
print(result.testsRun, len(result.failures), len(result.errors), len(result.skipped), result.wasSuccessful())
print([line for line in out.getvalue().splitlines() if line.startswith("AssertionError")])
